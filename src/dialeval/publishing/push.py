"""Sending: one commit per repository, hidden until it is complete, so that nobody ever sees half of one."""

from __future__ import annotations

from dataclasses import replace

from dialeval.publishing.hub import CONFLICT, Hub, HubTrouble, Remote
from dialeval.publishing.parcels import PublishError
from dialeval.publishing.plan import Plan, Wish
from dialeval.version import __version__


def push(plan: Plan, hub: Hub, wish: Wish) -> str:
    """Carry out a plan; returns the commit that now holds the parcel.

    A new repository begins private and is opened when it is filled. A commit stands on the one that
    the plan was made against, so what others pushed meanwhile is never overwritten.
    """
    if plan.remote is not None:
        return _fill(plan, plan.remote, hub, wish)
    remote = _create(plan, hub)
    try:
        return _fill(plan, remote, hub, wish)
    except (PublishError, HubTrouble) as error:
        if wish.private:
            raise
        raise type(error)(
            f"{error} (the new {plan.parcel.repo_id} is still private; add --public to open it)"
        ) from None


def _create(plan: Plan, hub: Hub) -> Remote:
    """An empty private repository, exactly as it is now."""
    name = plan.parcel.repo_id
    sdk = {"space_sdk": "gradio"} if plan.parcel.kind == "space" else {}
    with hub.told(f"creating {name}", conflict="it exists, but this token may not see it; choose another --org"):
        hub.api.create_repo(name, repo_type=plan.parcel.kind, private=True, **sdk)
    made = hub.look(plan.parcel)
    if made is None or not made.is_blank:
        raise PublishError(f"creating {name}: {CONFLICT}")
    return replace(made, private=True)


def _fill(plan: Plan, remote: Remote, hub: Hub, wish: Wish) -> str:
    name = plan.parcel.repo_id
    where = {"repo_id": name, "repo_type": plan.parcel.kind}
    if plan.private and not remote.private:
        with hub.told(f"making {name} private"):
            hub.api.update_repo_settings(**where, visibility="private")
    commit = remote.commit
    if plan.sent or plan.gone:
        message = wish.message or f"{name.split('/')[1]}, made with dialeval {__version__}"
        with hub.told(f"sending {name}"):
            done = hub.api.create_commit(
                **where, operations=_operations(plan), commit_message=message, parent_commit=commit
            )
        commit = str(done.oid)
    if plan.tag:
        with hub.told(f"tagging {name}"):
            hub.api.create_tag(**where, tag=plan.tag, revision=commit)
    if remote.private and plan.private is False:
        with hub.told(f"opening {name}"):
            hub.api.update_repo_settings(**where, visibility="public")
    return commit


def _operations(plan: Plan) -> list[object]:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations: list[object] = [CommitOperationDelete(path_in_repo=name) for name in plan.gone]
    for name in plan.sent:
        source = plan.parcel.files[name].source
        given = source if isinstance(source, bytes) else str(source)
        operations.append(CommitOperationAdd(path_in_repo=name, path_or_fileobj=given))
    return operations
