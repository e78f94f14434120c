"""Prints how many errors in a report of valgrind are of a library, and how many of other code.

    python ours.py REPORT.xml LIBRARY

An error is of the library if one of its stacks has a frame in a file whose name has LIBRARY in it:
the access itself, or where its memory was allocated or freed. The errors of the library go to
standard error in words, and the exit status is 1 if there are any.

CPython's own errors differ from version to version, so that no list of suppressions holds for all.
"""

import sys
import xml.etree.ElementTree as xml


def words(element, name):
    return element.findtext(name) or ""


def frames(stack):
    for frame in stack.iter("frame"):
        place = words(frame, "file") and f"{words(frame, 'file')}:{words(frame, 'line')}"
        yield f"    {words(frame, 'fn') or '?'} ({place or words(frame, 'obj')})"


def report(error):
    yield words(error, "what") or words(error, "xwhat/text") or words(error, "kind")
    for part in error:
        if part.tag == "auxwhat":
            yield f"  {part.text}"
        elif part.tag == "stack":
            yield from frames(part)


def main():
    path, library = sys.argv[1:]
    errors = xml.parse(path).getroot().findall("error")
    ours = [
        error
        for error in errors
        if any(library in (place.text or "") for place in error.findall(".//frame/obj"))
    ]
    for error in ours:
        print("\n".join(report(error)), file=sys.stderr)
    print(f"{len(ours)} {len(errors) - len(ours)}")
    sys.exit(bool(ours))


main()
