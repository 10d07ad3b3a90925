"""What the examples share: their options, how they end, and how they save their picture.

An example is a script with a function `main` of its parsed options, and ends in

    if __name__ == "__main__":
        common.run(main, common.parser(__doc__))

The options that all of them have: `--quick` cuts the work short, to see whether it runs; `--eager`
does without compilation, which changes the time, and the numbers at most in their last digits;
`--seed`; and `--out`, the picture. It is written as a whole or not at all, so that Ctrl-C leaves
nothing half-made behind.

Import this module before the optional packages: where one is missing, it says how to get it.
"""

import argparse
import importlib.util
import io
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INSTALL = f'{sys.executable} -m pip install --editable "{ROOT}[examples]"'


def end_quietly(kind, error, trace):
    """Report what ended the program: Ctrl-C in a short line, all else as ever."""
    if issubclass(kind, KeyboardInterrupt):
        print("\nstopped", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = end_quietly  # from here on, and so while the packages are loaded


def require(*packages):
    """End the program if a package is missing, and name the command that installs it."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"This example needs {' and '.join(missing)}. To install: {INSTALL}")


require("numpy", "funcgrad", "matplotlib", "scipy", "tqdm")

from PIL import Image  # noqa: E402, which Matplotlib brings
from tqdm import tqdm  # noqa: E402

import funcgrad as fg  # noqa: E402

FORMATS = (".png", ".svg", ".pdf")


def parser(doc, formats=FORMATS):
    """Return a parser of the shared options, to which an example may add its own.

    The first line of `doc`, the docstring of the example, says what it does. `formats` are the
    suffixes that the picture may have, the usual one first.
    """

    def picture(text):
        path = Path(text)
        if path.suffix.lower() not in formats or path.is_dir():
            raise argparse.ArgumentTypeError(f"{text!r} does not end in {' or '.join(formats)}")
        return path

    script = Path(sys.argv[0])
    made = argparse.ArgumentParser(prog=script.name, description=doc.splitlines()[0])
    made.add_argument("--seed", type=int, default=0, help="of all random numbers (default: 0)")
    made.add_argument("--quick", action="store_true", help="cut short, to see whether it runs")
    made.add_argument("--eager", action="store_true", help="train without compilation")
    made.add_argument(
        "--out",
        type=picture,
        default=script.with_suffix(formats[0]).name,  # parsed, as what is given would be
        metavar="PATH",
        help="the picture (default: %(default)s, in the current folder)",
    )
    return made


def run(main, options):
    """Call `main` with the parsed options; Ctrl-C ends it with a short line and the code 130.

    Among the options is `args.jit`, which is `fg.jit`, or with `--eager` changes nothing.
    """
    args = options.parse_args()
    args.jit = as_it_is if args.eager else fg.jit
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        options.error(f"--out: {error}")
    try:
        main(args)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        sys.exit(130)


def save(figure, path, dpi=80, colours=256):
    """Save a figure of Matplotlib, and print where; a PNG has that many colours."""
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=dpi)
    if path.suffix.lower() == ".png":  # with a palette, files are a third as large
        drawn = Image.open(content).convert("RGB").quantize(colours, dither=Image.Dither.NONE)
        content = io.BytesIO()
        drawn.save(content, format="png", optimize=True)
    write(content.getvalue(), path)


def write(content, path):
    """Write the bytes of a picture as a whole or not at all, and print where."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # mkstemp makes what nobody else may read
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    print(f"picture: {path}")


def progress(count, unit="step", **options):
    """Count from 0 to `count` - 1, with a progress bar where somebody is watching."""
    return tqdm(range(count), unit=unit, disable=None, **options)


def watched():
    """Tell whether somebody is watching, and progress is to be shown."""
    return sys.stderr.isatty()


def finished(result):
    """Return what `fg.train.fit` returned; if Ctrl-C ended it, end the program as well."""
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    return result


def as_it_is(fun):
    """Return `fun`: what `--eager` has instead of `fg.jit`."""
    return fun


def positive(text):
    """Parse an option that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number, 1 or more")
    return int(text)
