"""Drafters that draft from inside the target model, by weights of their own or by some of its own.

`medusa`: heads on the last hidden state, one a position ahead. `eagle`: a decoder layer over hidden states;
`mtp`: such a layer that some checkpoints bring along. `early_exit`: the target's first layers, with
no weights of their own. `load` opens one by name or place, as the setting `draft_heads` gives it; `training`
makes heads for `rejoinder llm train-heads`.
"""
