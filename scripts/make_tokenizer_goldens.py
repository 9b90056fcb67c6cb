#!/usr/bin/env python3
"""Writes test/text/data/NAME.tokenizer.json and NAME.cases.json: small tokenizers of every kind that is supported, and what
Hugging Face's `tokenizers` (0.20) makes of a nasty corpus with each of them.

Needs the package tokenizers. Everything is seeded; the texts to train on are in this file.
"""
import json
import os
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

DATA = os.path.join(os.path.dirname(__file__), "..", "test", "text", "data")
TRAIN = [
    "The water runs down the hill and the hydrant stands beside the road.",
    "When the fire starts, they open the valve; water under pressure does the rest.",
    "Who keeps the water? The heavy hitters stay, the others leave, the recent ones wait.",
    "for (int i = 0; i < 1000; ++i) {\n    total += values[i];\n    if (total > 2048) return;\n}\n",
    "In 1801 there were 12 of them, in 1863 more than 3,400. It's what they'd said; we'll see.",
    "Straße, café, naïve, Ångström. Вода течёт. 水は流れる。 пожарный гидрант",
    "HELLO Hello hello    spaces\tand\ttabs\n\nand   lines \n",
] * 3

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def corpus():
    out = ["", " ", "  ", "a", " a", "a ", "  a  ", "\t", "\n", "\r\n", "a\r\nb\r\n", "a\0b", "\0", "\x01\x7f", "Hello, world!",
           "don't CAN'T we'll I'M they'd", "'S 'ſ 'T", "naïve café", "cafe\u0301 e\u0301\u0323 e\u0323\u0301", "A\u030a\u0327 \u212b",
           "ﬁ ﬂ ①② ½ ǅ İi ẞß", "“quotes” — … ‐", "日本語 中文。", "한국어 \u1112\u1161\u11ab", "русский ТЕКСТ", "العربية עִבְרִית", "हिन्दी ไทย",
           "👍", "👩\u200d👩\u200d👧", "🇯🇵👍🏽", "𝔘𝔫𝔦 𠜎", "\u200b\u200d\ufeff\u180e", "\xa0x\u3000y\u2028z\u2029\x85", "x = {'a': [1, 2]}\n\tif y:\n",
           "<b>&nbsp;</b>", "C:\\a_b__c", "....!!!???", "▁a▁b▁▁c ▁", "Ġhello Ċ", "<0x41><0xE2>", "e" + "\u0301" * 40, "٣٤٥ १२३ Ⅷ ²", "a\u0345b",
           "<s>", "</s>", "<s>G", "a<s> b</s>", "x <s><s> y", "<unk>x", "<pad>", "[A] [A][A]", "x[A]y", " [A]  z", "wordy word words word",
           "(word) word.", "Mixed MIXED mixed", "<|x|>", "a<|x|>b", "  <|x|>  ", "\n<|x|>\n", "THE water",
           "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "the" * 20, "ab" * 30]
    out += ["1" * n for n in range(1, 13)] + ["a " + "1234567890123"[:n] + "." for n in (1, 2, 3, 4, 7)]
    for n in list(range(2, 13)) + [16, 23, 24, 25, 49, 64, 65, 200]:
        out += [" " * n, "a" + " " * n + "b"]
    out += ["\n" * 17, "\t" * 9, " \n" * 5, "  \n   \n x", "   indented\n      more\n"]
    rng = random.Random(7)
    parts = ["the", " ", "  ", "\n", "\t", "water", "Water", "1", "23", "'s", "'", ".", ",", "é", "e\u0301", "👍", "日", "水", "<s>", "</s>", "[A]", "word",
             "<|x|>", "▁", "ß", "ſ", "\u200d", "\xa0", "\r", "Ġ", "-", "_", "/", "<0x0A>", "İ", "ﬁ", "\u0323"]
    out += ["".join(rng.choice(parts) for _ in range(rng.randint(2, 24))) for _ in range(50)]
    return out


def byte_level(normalizer=None, pre=None, post=None, size=330, ignore_merges=False, special=("<s>", "<pad>", "</s>", "<unk>"), **model):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges, **model))
    if normalizer is not None:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False) if pre is None else pre
    affixes = {k: model[k] for k in ("continuing_subword_prefix", "end_of_word_suffix") if k in model}
    t.train_from_iterator(TRAIN, trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False,
                                                     initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), **affixes))
    t.decoder = decoders.ByteLevel()
    if post is not None:
        t.post_processor = post
    return t


def sentencepiece(normalizer=None, pre=None, decoder=None, size=420):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if normalizer is not None:
        t.normalizer = normalizer
    if pre is not None:
        t.pre_tokenizer = pre
    learner = Tokenizer(models.BPE(unk_token="<unk>"))  # learns words, but the result sees the whole text
    learner.normalizer = normalizers.Replace(" ", "▁")
    learner.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    learner.train_from_iterator(TRAIN, trainers.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False, limit_alphabet=70))
    j, learnt = json.loads(t.to_str()), json.loads(learner.to_str())
    j["model"]["vocab"], j["model"]["merges"] = learnt["model"]["vocab"], learnt["model"]["merges"]
    t = Tokenizer.from_str(json.dumps(j))
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    t.decoder = decoder
    if decoder is None:
        t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", 1)])
    return t


def plain(normalizer, pre, decoder=None, **model):
    t = Tokenizer(models.BPE(unk_token="<unk>", **model))
    t.normalizer, t.pre_tokenizer = normalizer, pre
    affixes = {k: model[k] for k in ("continuing_subword_prefix", "end_of_word_suffix") if k in model}
    t.train_from_iterator(TRAIN, trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>"], show_progress=False, limit_alphabet=40, **affixes))
    if decoder is not None:
        t.decoder = decoder
    return t


def with_added(t):
    t.add_special_tokens([AddedToken("<|x|>", lstrip=True, rstrip=True, normalized=False)])
    t.add_tokens([AddedToken("word", single_word=True), AddedToken("[A]", rstrip=True), AddedToken("Mixed", normalized=True),
                  AddedToken("水", normalized=False), AddedToken("  \n", lstrip=True), AddedToken("the water", normalized=True)])
    return t


def tokenizers():
    split = pre_tokenizers.Split
    raw = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bos = processors.TemplateProcessing("</s> $A", "</s> $A </s> $B", [("</s>", 2)])
    llama3 = byte_level(pre=pre_tokenizers.Sequence([split(Regex(LLAMA3), "isolated"), raw]), ignore_merges=True, special=())
    llama3.add_special_tokens(["<s>", "</s>"])
    llama3.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing("<s> $A", None, [("<s>", llama3.token_to_id("<s>"))])])
    neox = byte_level(normalizer=normalizers.NFC(), post=processors.ByteLevel(trim_offsets=False))
    neox.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    mark = "▁"
    return {
        "gpt2": byte_level(),
        "opt": byte_level(post=bos),
        "roberta": byte_level(pre=pre_tokenizers.ByteLevel(add_prefix_space=True), post=processors.RobertaProcessing(("</s>", 2), ("<s>", 0))),
        "neox": neox,
        "llama3": llama3,
        "o200k": byte_level(pre=pre_tokenizers.Sequence([split(Regex(O200K), "removed", True), raw])),
        "smollm": byte_level(pre=pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)])),
        "deepseek": byte_level(pre=pre_tokenizers.Sequence([
            split(Regex(r"[\r\n]"), "isolated"), split(Regex(r"\s?\p{L}+"), "isolated"), split(Regex(r"\s?\p{P}+"), "isolated"),
            split(Regex("[一-龥ࠀ-一가-퟿]+"), "isolated"), pre_tokenizers.Digits(True), raw])),
        "added": with_added(byte_level(normalizer=normalizers.Lowercase())),
        "suffix": byte_level(end_of_word_suffix="</w>", unk_token="<unk>", size=340),
        "llama": sentencepiece(normalizers.Sequence([normalizers.Prepend(mark), normalizers.Replace(" ", mark)])),
        "llama-added": with_added(sentencepiece(normalizers.Sequence([normalizers.Prepend(mark), normalizers.Replace(" ", mark)]))),
        "metaspace-first": sentencepiece(pre=pre_tokenizers.Metaspace(mark, prepend_scheme="first", split=False)),
        "metaspace-always": sentencepiece(pre=pre_tokenizers.Metaspace(mark, prepend_scheme="always", split=True), decoder=decoders.Metaspace(mark, "always")),
        "metaspace-never": sentencepiece(pre=pre_tokenizers.Metaspace(mark, prepend_scheme="never", split=True), decoder=decoders.Metaspace(mark, "never")),
        "whitespace": plain(normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]), pre_tokenizers.Whitespace(), fuse_unk=True),
        "prefix": plain(normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()]), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous")]),
                        decoder=decoders.Fuse(), continuing_subword_prefix="##"),
        "behaviors": plain(normalizers.Sequence([normalizers.NFD(), normalizers.Replace(Regex(r"\s{2,}+"), "  "), normalizers.Replace("水", "water")]),
                           pre_tokenizers.Sequence([split(Regex(r"\d"), "merged_with_previous"), split("e", "merged_with_next"),
                                                    split(Regex(r"\b\W"), "isolated"), pre_tokenizers.Digits(False), pre_tokenizers.CharDelimiterSplit("i")]),
                           decoder=decoders.Sequence([decoders.Replace(Regex("[ae]"), "*"), decoders.Strip("t", 1, 0), decoders.Fuse()])),
    }


def cases(t):
    """Left out: "plain" where it equals "ids", "decoded" where it equals "text", "with_special" where it equals "decoded"."""
    out = []
    for text in corpus():
        ids = t.encode(text).ids
        case = {"text": text, "ids": ids, "plain": t.encode(text, add_special_tokens=False).ids}
        out.append(case)
    rng = random.Random(11)
    out += [{"ids": [rng.randrange(t.get_vocab_size() + 3) for _ in range(rng.randint(1, 14))]} for _ in range(40)]
    for case in out:
        case["decoded"], case["with_special"] = t.decode(case["ids"]), t.decode(case["ids"], skip_special_tokens=False)
        for short, long in (("with_special", "decoded"), ("decoded", "text"), ("plain", "ids")):
            if short in case and case[short] == case.get(long):
                del case[short]
    return out


def main():
    for name, t in tokenizers().items():
        with open(os.path.join(DATA, name + ".tokenizer.json"), "w") as f:
            f.write(json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        with open(os.path.join(DATA, name + ".cases.json"), "w") as f:
            f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in cases(t)) + "\n]\n")


if __name__ == "__main__":
    main()
