"""The read model as HTML: what `tenuto ui` serves and what `tenuto page` writes. Pure: records in, elements out.

    page        what a page is: named sections, the frame around them, which sections changed

A page never reads a journal, a file or a clock: entry points ask show/ and hand the records over. Text becomes HTML by
htpy, which escapes it; raw markup is made in the modules that say so in their docstring, and nowhere else.
"""
