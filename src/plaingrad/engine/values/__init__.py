"""Values with a life of their own: subclasses of arrays and numbers, text, borrowed memory, records, streams.

In comes a value that an operation has met and the level around it; out goes what the plain call would have made of
it, with its derivative kept, or a refusal where that would be lost. Called by `calls` and the modes.

Subclasses of arrays: `array_classes`, `array_items`, `probes`, and the decision, `subclasses`. Text: `texts`,
`text_into_c`, `truncated` (whole numbers). Memory: `borrowed`, `layouts`, `twins`, `records`. And `users_numbers`,
`own_numbers` of other libraries, `fresh` copies, `unfiled` streams, `nesting` (the levels around one).
"""
