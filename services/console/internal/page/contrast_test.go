package page

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// contrast is the ratio of two colours as WCAG 2 defines it, from 1 to 21.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(colour string) float64 {
		value, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
		if err != nil || len(colour) != 7 {
			t.Fatalf("colour %q: want #rrggbb", colour)
		}
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			c := float64(value>>(16-8*i)&0xff) / 255
			if c <= 0.04045 {
				c /= 12.92
			} else {
				c = math.Pow((c+0.055)/1.055, 2.4)
			}
			sum += weight * c
		}
		return sum
	}
	lighter, darker := luminance(a), luminance(b)
	if lighter < darker {
		lighter, darker = darker, lighter
	}
	return (lighter + 0.05) / (darker + 0.05)
}

var colour = regexp.MustCompile(`--([a-z0-9]+): (#[0-9a-f]{6});`)

// TestContrast holds the colours of texts against WCAG 2, level AA: 4.5 to 1 on what is behind
// them, in light and dark.
func TestContrast(t *testing.T) {
	t.Parallel()
	if got := contrast(t, "#000000", "#ffffff"); math.Abs(got-21) > 0.01 {
		t.Fatalf("black on white has %.2f, want 21", got)
	}
	content, err := static.ReadFile("static/console.css")
	if err != nil {
		t.Fatal(err)
	}
	light, rest, found := strings.Cut(string(content), "@media (prefers-color-scheme: dark)")
	dark, _, closed := strings.Cut(rest, "\n}\n")
	if !found || !closed {
		t.Fatal("the style has no dark colours")
	}
	for name, text := range map[string]string{"light": light, "dark": dark} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := map[string]string{}
			for _, c := range colour.FindAllStringSubmatch(text, -1) {
				of[c[1]] = c[2]
			}
			pairs := [][2]string{{"front", "bar"}, {"link", "bar"}, {"quiet", "bar"}, {"cell", "broken"}, {"cell", "closed"}}
			for _, front := range []string{"front", "quiet", "link", "bad", "good", "wait", "c0", "c1", "c2", "c3"} {
				pairs = append(pairs, [2]string{front, "back"})
			}
			for level := range 9 {
				pairs = append(pairs, [2]string{"cell", "h" + strconv.Itoa(level)})
			}
			for _, pair := range pairs {
				if got := contrast(t, of[pair[0]], of[pair[1]]); got < 4.5 {
					t.Errorf("%s on %s has a contrast of %.2f, want 4.5", pair[0], pair[1], got)
				}
			}
		})
	}
}
