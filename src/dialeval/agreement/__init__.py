"""The agreement harness: how far a metric agrees with people, and how sure one can be.

From the inside out: `correlation`, `discrimination` (statistics of one metric), `resampling`
(intervals), `comparison` and `corrections` (two or many metrics), `annotators` (the ceiling),
`system_level`; then `sources` (what can be judged), `values` (scoring with a cache), `judgements`
(the human side), `settings`, `measure` (one metric on one benchmark), `runs` (all of them), and
`tables`, `leaderboard`, `plots` (what is shown).
"""
