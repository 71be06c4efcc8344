package masked

import (
	"regexp"
	"strings"
)

var (
	// within finds names and what is between them and their values: export TOKEN=...,
	// --password ..., token: ..., "token": "...", and the same with escaped quotes.
	within = regexp.MustCompile(`([\w.-]+)((?:\\*["'])?[ \t]*(?::=|=[=>]?|:)[ \t]*|[ \t]+)`)
	// variable is a value that names where another one is.
	variable = regexp.MustCompile(`^\$([A-Za-z_]\w*|\{\w+\}|\([^()]*\))$`)
	// begins is what stands before the first key in a line of YAML.
	begins = regexp.MustCompile(`(?:^|\n)([ \t]*(?:- +)*)["']?$`)
	// block is what a line of YAML ends with whose value is in the lines below.
	block = regexp.MustCompile(`^[ \t]*(?:[|>][-+0-9]*)?[ \t]*(?:#[^\n]*)?(?:\r?\n|$)`)
)

// assignments masks what is given to names of secrets. Without = or : a value follows only a
// flag.
func (m *masker) assignments(text string) string {
	if !hints.MatchString(text) {
		return text
	}
	var out strings.Builder
	done := 0 // what is in out
	for from := 0; ; {
		at := within.FindStringSubmatchIndex(text[from:])
		if at == nil {
			break
		}
		begin, end, value := from+at[2], from+at[3], from+at[5]
		name, between := text[begin:end], text[end:value]
		from = end // the rest may begin another one
		assigned := strings.ContainsAny(between, "=:") || strings.HasPrefix(name, "-") && !strings.HasPrefix(text[value:], "-")
		if !assigned || !isSecret(name) {
			continue
		}
		stop := valueEnd(text, begin, value, between)
		if shown := strings.Trim(text[value:stop], " \t\r\"',;&|"); shown == "" || shown == Mask || variable.MatchString(shown) {
			continue
		}
		m.hidden++
		out.WriteString(text[done:value] + Mask)
		done, from = stop, stop
		if text[stop-1] == '\n' { // of a block
			out.WriteByte('\n')
		}
	}
	return out.String() + text[done:]
}

// valueEnd is where the value ends that begins in a text, after a name.
func valueEnd(text string, name, value int, between string) int {
	rest := text[value:]
	quotedName := strings.ContainsAny(between, `"'`)
	line := strings.Contains(between, ":") && !strings.HasSuffix(between, ":") || strings.HasPrefix(between, " ") && strings.ContainsAny(between, "=:")
	if first := begins.FindStringSubmatch(text[:name]); first != nil && strings.Contains(between, ":") {
		if end := blockEnd(rest, len(first[1])); end > 0 {
			return value + end
		}
		if !quotedName && !strings.HasPrefix(rest, `"`) && !strings.HasPrefix(rest, "'") {
			return value + plainEnd(rest, len(first[1]))
		}
	}
	switch {
	case strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "["):
		return value + bracketEnd(rest)
	case quoteAt(rest) >= 0 && strings.Contains(between, ":"):
		return value + quotedEnd(rest)
	case quotedName:
		return value + until(rest, " \t\r\n,}]")
	case line:
		return value + until(rest, "\n\"'")
	}
	return value + wordEnd(rest)
}
