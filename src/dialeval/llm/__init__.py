"""Language models as judges: a question per row, asked like a job and kept on disk.

A protocol (a small file: what is asked, on which scale, how the answer is read) becomes questions; the runner puts
them to a server that speaks OpenAI's chat completions, a bounded number at a time, and keeps every answer; readers
turn answers into values. `judge.LlmJudge` is the metric around them.
"""
