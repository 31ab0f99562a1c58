"""The page of the QuantiDCE module: one conversation, one reply, its score."""

import gradio as gr

from dialeval.evaluate_module import loaded

EXAMPLES = [
    ["Did you find your keys?\nNot yet, I have looked everywhere.", "Maybe you left them in the car?"],
    ["Did you find your keys?\nNot yet, I have looked everywhere.", "I like pancakes with syrup."],
]


def judge(context: str, response: str) -> tuple[str, str]:
    """Score one reply on both scales; what is wrong with the input is shown as it is."""
    turns = [turn.strip() for turn in context.splitlines() if turn.strip()]
    metric = loaded("quantidce")
    try:
        native = metric.score([response], [turns])
        human = metric.score([response], [turns], scale="human_percentile")
    except ValueError as error:
        raise gr.Error(str(error)) from None
    share = f"{human.aggregate:.0%} of human replies score lower"
    return f"{native.aggregate:.2f} ({share})", str(native.signature)


def build() -> gr.Blocks:
    """The page."""
    with gr.Blocks(title="QuantiDCE", analytics_enabled=False) as page:
        gr.Markdown("# QuantiDCE\nHow coherent would people find this reply, from 1 to 5?")
        context = gr.Textbox(label="Context, one turn per line", lines=4)
        response = gr.Textbox(label="Reply")
        button = gr.Button("Judge", variant="primary")
        score = gr.Textbox(label="Score", interactive=False)
        signature = gr.Textbox(label="Signature", interactive=False)
        gr.Examples(EXAMPLES, inputs=[context, response])
        button.click(judge, inputs=[context, response], outputs=[score, signature], api_name="judge")
    return page


if __name__ == "__main__":
    build().launch()
