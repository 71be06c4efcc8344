package masked

import "strings"

// until is where one of the characters is in a text, or its end.
func until(text, characters string) int {
	if end := strings.IndexAny(text, characters); end >= 0 {
		return end
	}
	return len(text)
}

// blockEnd is where the lines of YAML end that belong to a key with an indentation, where its
// value begins in the line below; 0 where it does not.
func blockEnd(text string, indentation int) int {
	head := block.FindString(text)
	if head == "" {
		return 0
	}
	if end := len(head) + deeper(text[len(head):], indentation); end > len(head) {
		return end
	}
	return 0
}

// plainEnd is where an unquoted value of YAML ends, which may go on in deeper lines.
func plainEnd(text string, indentation int) int {
	end := until(text, "\n")
	if end == len(text) {
		return end
	}
	if more := deeper(text[end+1:], indentation); more > 0 {
		return end + 1 + more
	}
	return end
}

// deeper is where the first lines of a text end that are indented by more.
func deeper(text string, indentation int) (end int) {
	for at := 0; at < len(text); {
		next := at + until(text[at:], "\n") + 1
		line := text[at:min(next, len(text))]
		at = min(next, len(text))
		blank := strings.TrimSpace(line) == ""
		if !blank && len(line)-len(strings.TrimLeft(line, " \t")) <= indentation {
			return end
		}
		if !blank {
			end = at
		}
	}
	return end
}

// quoteAt is where the quote is that begins a text, after what escapes it; -1 without one.
func quoteAt(text string) int {
	at := len(text) - len(strings.TrimLeft(text, `\`))
	if at < len(text) && (text[at] == '"' || text[at] == '\'') {
		return at
	}
	return -1
}

// quotedEnd is where a quoted text ends, which may be escaped itself and may have escaped
// quotes. One that is not closed ends with the whole.
func quotedEnd(text string) int {
	escapes := quoteAt(text)
	quote, before := text[escapes], 0
	for at := escapes + 1; at < len(text); at++ {
		switch {
		case text[at] == '\\':
			before++
			continue
		case text[at] == quote && quote == '\'' && escapes == 0:
			if !strings.HasPrefix(text[at+1:], "'") {
				return at + 1
			}
			at++ // two are one of the text
		case text[at] == quote && (escapes == 0 && before%2 == 0 || escapes > 0 && before <= escapes):
			return at + 1
		}
		before = 0
	}
	return len(text)
}

// bracketEnd is where a list or object of JSON ends.
func bracketEnd(text string) int {
	depth := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			at += quotedEnd(text[at:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return len(text)
}

// wordEnd is where a word of a shell ends, with the quoted parts of it.
func wordEnd(text string) int {
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case ' ', '\t', '\r', '\n':
			return at
		case '\\':
			at++
		case '"', '\'':
			end := quotedEnd(text[at:])
			if at > 0 && at+end == len(text) && text[len(text)-1] != text[at] {
				return at // it closes what was opened before the name
			}
			at += end - 1
		case '$':
			if strings.HasPrefix(text[at:], "$(") {
				at += until(text[at:], ")")
			}
		}
	}
	return len(text)
}
