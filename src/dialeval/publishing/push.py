"""Sending: one commit per repository, hidden until it is complete, so that nobody ever sees half of one."""

from __future__ import annotations

from dataclasses import replace

from dialeval.publishing.hub import CONFLICT, Hub, HubTrouble, Remote
from dialeval.publishing.plan import PublishOptions, UploadPlan
from dialeval.publishing.uploads import PublishError
from dialeval.version import __version__


def push(plan: UploadPlan, hub: Hub, options: PublishOptions) -> str:
    """Carry out a plan; returns the commit that now holds the upload.

    A new repository begins private and is opened when it is filled. A commit stands on the one that
    the plan was made against, so what others pushed meanwhile is never overwritten.
    """
    if plan.remote is not None:
        return _fill(plan, plan.remote, hub, options)
    remote = _create(plan, hub)
    try:
        return _fill(plan, remote, hub, options)
    except (PublishError, HubTrouble) as error:
        if options.private:
            raise
        raise type(error)(
            f"{error} (the new {plan.upload.repo_id} is still private; add --public to open it)"
        ) from None


def _create(plan: UploadPlan, hub: Hub) -> Remote:
    """An empty private repository, exactly as it is now."""
    name = plan.upload.repo_id
    sdk = {"space_sdk": "gradio"} if plan.upload.kind == "space" else {}
    with hub.explained(f"creating {name}", conflict="it exists, but this token may not see it; choose another --org"):
        hub.api.create_repo(name, repo_type=plan.upload.kind, private=True, **sdk)
    made = hub.look(plan.upload)
    if made is None or not made.is_blank:
        raise PublishError(f"creating {name}: {CONFLICT}")
    return replace(made, private=True)


def _fill(plan: UploadPlan, remote: Remote, hub: Hub, options: PublishOptions) -> str:
    name = plan.upload.repo_id
    where = {"repo_id": name, "repo_type": plan.upload.kind}
    if plan.private and not remote.private:
        with hub.explained(f"making {name} private"):
            hub.api.update_repo_settings(**where, visibility="private")
    commit = remote.commit
    if plan.sent or plan.gone:
        message = options.message or f"{name.split('/')[1]}, made with dialeval {__version__}"
        with hub.explained(f"sending {name}"):
            done = hub.api.create_commit(
                **where, operations=_operations(plan), commit_message=message, parent_commit=commit
            )
        commit = str(done.oid)
    if plan.tag:
        with hub.explained(f"tagging {name}"):
            hub.api.create_tag(**where, tag=plan.tag, revision=commit)
    if remote.private and plan.private is False:
        with hub.explained(f"opening {name}"):
            hub.api.update_repo_settings(**where, visibility="public")
    return commit


def _operations(plan: UploadPlan) -> list[object]:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations: list[object] = [CommitOperationDelete(path_in_repo=name) for name in plan.gone]
    for name in plan.sent:
        source = plan.upload.files[name].source
        given = source if isinstance(source, bytes) else str(source)
        operations.append(CommitOperationAdd(path_in_repo=name, path_or_fileobj=given))
    return operations
