"""The scenario format as a JSON Schema (2020-12), made from the same table of options that the parser reads.

It says all that a schema can say; what depends on several values (the rules between options, a prompt over
`max_model_len`) only the parser checks.
"""

from typing import Final

from engine.actions import DEFAULT_ACCEPT, DEFAULT_LOAD_STEPS, Abort, AddRequest, ResetPrefixCache, Step
from engine.config import KINDS, EngineConfig, GroupConfig
from engine.config_options import Option, defaults_of
from engine.config_rules import MAX_GROUPS, SIZE_KEYS
from engine.scenario import VERSION
from engine.schema_parts import Schema, flag, integer, list_of, object_of, or_null, text
from engine.strict_json import MAX_INT

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def scenario_schema() -> Schema:
    """The schema of a whole scenario; every option has a `description` and its default."""
    whole = object_of(
        {
            "version": {"type": "integer", "const": VERSION, "description": "The version of this format."},
            "title": text("A title for people.", default="", minimum=0),
            "config": config_schema(),
            "actions": list_of(
                {"$ref": "#/$defs/action"}, "What happens, in this order; an action's index is its time."
            ),
        },
        ("version", "config", "actions"),
        "A config and the actions on it.",
    )
    return {"$schema": DIALECT, "title": "Poolscope scenario", **whole, "$defs": _definitions()}


def config_schema() -> Schema:
    """The schema of a config."""
    options = EngineConfig.options()
    properties = {name: _option(option, defaults_of(EngineConfig).get(name)) for name, option in options.items()}
    properties["groups"] = {
        **list_of({"$ref": "#/$defs/group"}, options["groups"].doc, 1),
        "maxItems": MAX_GROUPS,
        "default": [{"kind": "full_attention"}],
    }
    return object_of(properties, ("num_blocks",), "How the engine is set up.")


def _definitions() -> Schema:
    return {
        "action": {"oneOf": [_add_request(), *_other_actions()]},
        "group": {"oneOf": [_group(kind) for kind in KINDS]},
        "span": _span(),
        "part": {"oneOf": [{"$ref": "#/$defs/span"}, *_part_objects()]},
        "id": text("The id of a request."),
        "token": integer("A token id.", 0),
    }


def _group(kind: str) -> Schema:
    """A group of one kind: only the keys that mean something for it."""
    options = {
        name: option for name, option in GroupConfig.options().items() if not option.kinds or kind in option.kinds
    }
    defaults = defaults_of(GroupConfig)
    properties = {name: _option(option, defaults.get(name)) for name, option in options.items()}
    properties["kind"] = {"const": kind, "description": options["kind"].doc}
    required = ("kind", *(key for of, key in SIZE_KEYS.items() if of == kind))
    return object_of(properties, required, f"A group of {kind} layers.")


def _option(option: Option, default: object) -> Schema:
    """The schema of one option."""
    schema: Schema = {"type": [option.type, "null"] if option.nullable else option.type, "description": option.doc}
    if option.flag:
        schema["description"] = f"{option.doc} vLLM's own flag: {option.flag}."
    if option.choices:
        schema["enum"] = list(option.choices)
    if option.minimum is not None:
        schema["minimum"] = option.minimum
    if option.type == "integer":
        schema["maximum"] = MAX_INT
    if option.below is not None:
        schema["exclusiveMaximum"] = option.below
    if default is not None or option.nullable:
        schema["default"] = default
    return schema


def _add_request() -> Schema:
    properties: Schema = {
        "do": {"const": AddRequest.do},
        "id": {"$ref": "#/$defs/id"},
        "prompt": {
            "description": "One part, or a list of parts one after the other.",
            "anyOf": [{"$ref": "#/$defs/part"}, list_of({"$ref": "#/$defs/part"}, "Parts, mixable.", 1)],
        },
        "max_tokens": integer("The request ends after so many output tokens.", 1),
        "output": or_null(list_of({"$ref": "#/$defs/span"}, "What the model will say, token by token.")),
        "stop_token_ids": or_null(list_of({"$ref": "#/$defs/token"}, "Any of these ids ends the request.")),
        "priority": integer("Under the priority policy, smaller is served first.", -MAX_INT, 0),
        "cache_salt": or_null(text("Only requests with the same salt share cached blocks.", minimum=0)),
        "lora": or_null(text("The name of a LoRA adapter; it takes part in block hashes.")),
        "skip_reading_prefix_cache": flag("Computes the whole prompt anew, though it may be cached."),
        "accept": or_null(list_of(integer("How many leading drafts are right.", 0), _ACCEPT_DOC)),
        "external": or_null(_external()),
    }
    return object_of(properties, ("do", "id", "prompt", "max_tokens"), "A request arrives.")


_ACCEPT_DOC: Final = (
    f"For each time drafts are proposed, over and over, how many are right; by default {[*DEFAULT_ACCEPT]}."
)


def _external() -> Schema:
    properties: Schema = {
        "tokens": integer("The connector's store holds the first so many tokens of the prompt.", 0),
        "async": flag("Loads them while the request waits."),
        "steps": integer("How many steps an async load takes; less than 1 means 1.", -MAX_INT, DEFAULT_LOAD_STEPS),
    }
    return object_of(properties, ("tokens",), "Tokens whose KV is loaded from elsewhere; needs a single group.")


def _other_actions() -> list[Schema]:
    step: Schema = {
        "do": {"const": Step.do},
        "abort": list_of({"$ref": "#/$defs/id"}, "Requests that are aborted while the step runs."),
    }
    abort: Schema = {"do": {"const": Abort.do}, "id": {"$ref": "#/$defs/id"}}
    reset: Schema = {
        "do": {"const": ResetPrefixCache.do},
        "reset_running_requests": flag("Preempts every running request first, so that the reset succeeds."),
    }
    return [
        object_of(step, ("do",), "One engine step."),
        object_of(abort, ("do", "id"), "A request is aborted between steps; an unknown id does nothing."),
        object_of(reset, ("do",), "The prefix cache is emptied, unless a block is in use."),
    ]


def _part_objects() -> list[Schema]:
    tokens = integer("How many tokens.", 1)
    return [
        object_of({"tokens": tokens}, ("tokens",), "Tokens of the request's own."),
        object_of(
            {"shared": text("The name of the run."), "tokens": tokens},
            ("shared", "tokens"),
            "The first tokens of a run that all requests know by its name.",
        ),
        object_of(
            {"continue": {"$ref": "#/$defs/id"}},
            ("continue",),
            "The prompt and the output so far of the latest request with this id.",
        ),
        object_of(
            {"text": {"type": "string", "description": "Any words.", "minLength": 1}},
            ("text",),
            "What the tokenizer makes of a text.",
        ),
    ]


def _span() -> Schema:
    return {
        "type": "array",
        "description": "[first, count]: consecutive token ids.",
        "prefixItems": [{"$ref": "#/$defs/token"}, integer("How many tokens.", 1)],
        "items": False,
        "minItems": 2,
    }
