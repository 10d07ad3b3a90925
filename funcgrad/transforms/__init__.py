"""The transforms: functions that turn functions into their derivatives."""
