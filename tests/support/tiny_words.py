"""The words that the tiny encoder of the tests knows."""

WORDS = (
    "hello there how are you i am fine thanks what do like to eat fish and chips the weather is nice today "
    "shall we go for a walk yes please no thank sorry can not come tomorrow maybe next week see then bye dog cat"
).split()
