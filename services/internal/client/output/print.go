package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"
)

// Format is how an answer is printed. It is the value of the flag -o, the same for
// all commands.
type Format string

// The formats. Wide is Text where there is no more to show.
const (
	Text Format = "text"
	Wide Format = "wide"
	JSON Format = "json"
	YAML Format = "yaml"
	// Name prints KIND/NAME of each object.
	Name Format = "name"
)

// Formats lists them. Besides, there is jsonpath= with an expression.
func Formats() []Format { return []Format{Text, Wide, JSON, YAML, Name} }

// Set implements pflag.Value.
func (f *Format) Set(name string) error {
	if expression, is := strings.CutPrefix(name, jsonPathPrefix); is {
		if _, err := parsePath(expression); err != nil {
			return err
		}
	} else if !slices.Contains(Formats(), Format(name)) {
		return errors.New("want text, wide, json, yaml, name or jsonpath=EXPRESSION")
	}
	*f = Format(name)
	return nil
}

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// Data reports whether programs read the answer.
func (f Format) Data() bool { return f != Text && f != Wide }

// Print writes value in the format; table gives the rows for people.
func Print(w io.Writer, format Format, value any, table func() Table) error {
	switch format {
	case JSON:
		return printJSON(w, value)
	case YAML:
		return printYAML(w, value)
	case Name:
		return printNames(w, value)
	}
	if expression, is := strings.CutPrefix(string(format), jsonPathPrefix); is {
		return printPath(w, expression, value)
	}
	t := table()
	if format == Wide {
		t.Long = nil
	}
	return t.Write(w, "")
}

// printYAML writes YAML; a value with what a terminal would obey is written as JSON,
// which is YAML in which such characters can be written out.
func printYAML(w io.Writer, value any) error {
	var text bytes.Buffer
	if err := printJSON(&text, value); err != nil {
		return fmt.Errorf("print as YAML: %w", err)
	}
	encoded := []byte(escaped(text.String(), true, single))
	if bytes.Equal(encoded, text.Bytes()) {
		var err error
		if encoded, err = yaml.JSONToYAML(encoded); err != nil {
			return fmt.Errorf("print as YAML: %w", err)
		}
	}
	_, err := w.Write(encoded)
	return err
}

func printJSON(w io.Writer, value any) error {
	encoded, err := encode(value)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, encoded, "", "  "); err != nil {
		return fmt.Errorf("print as JSON: %w", err)
	}
	text.WriteByte('\n')
	_, err = w.Write(text.Bytes())
	return err
}

// age is the time since then as people write it; empty for no time.
func age(then, now time.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(then)))
}

// Short cuts a sentence for a table.
func Short(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// Latency prints a time span to the millisecond, seconds from ten on to the
// tenth.
func Latency(d time.Duration) string {
	if d < 0 {
		return "-"
	}
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
