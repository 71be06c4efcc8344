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

var (
	colour = regexp.MustCompile(`--([a-z0-9]+): (#[0-9a-f]{6});`)
	uses   = regexp.MustCompile(`(?:^|[ ;{])(color|stroke|fill|outline|outline-color|border|border-bottom|background): ([^;}]*)[;}]`)
	custom = regexp.MustCompile(`var\(--([a-z0-9]+)\)`)
)

// use is a colour of the stylesheet, with what may be behind it and the least contrast with that.
type use struct {
	property, colour string
	grounds          []string
	least            float64
}

// usesOf lists what the rules of a stylesheet use colours for. Texts of the map are on its cells,
// and all others on the page or a bar. Lines of tables and frames are an ornament: what they
// separate has its own text.
func usesOf(t *testing.T, rules string) (all []use) {
	t.Helper()
	page, cells := []string{"back", "bar"}, []string{"broken", "closed"}
	for level := range 9 {
		cells = append(cells, "h"+strconv.Itoa(level))
	}
	for _, found := range uses.FindAllStringSubmatch(rules, -1) {
		property, value := found[1], found[2]
		name := custom.FindStringSubmatch(value)
		if name == nil {
			if value != "none" && value != "0" {
				t.Errorf("%s: %s is no custom property, so it has no dark colour", property, value)
			}
			continue
		}
		one := use{property: property, colour: name[1], grounds: page, least: 4.5}
		switch {
		case property == "background", strings.HasPrefix(property, "border") && one.colour == "line":
			continue
		case property != "color":
			one.least = 3
		}
		if one.colour == "cell" {
			one.grounds = cells
		}
		if property == "outline-color" { // of the focus in the map
			one.grounds = append(one.grounds, cells...)
		}
		all = append(all, one)
	}
	return all
}

// TestContrast holds the colours of the stylesheet against WCAG 2, level AA, in light and dark: 4.5
// to 1 for texts, and 3 to 1 for lines of charts, frames of inputs and what shows the focus.
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
	dark, rules, closed := strings.Cut(rest, "\n}\n")
	if !found || !closed {
		t.Fatal("the style has no dark colours")
	}
	all := usesOf(t, rules)
	seen := map[string]int{}
	for _, use := range all {
		seen[use.property]++
	}
	if seen["color"] < 10 || seen["stroke"] != 4 || seen["outline"] != 1 || seen["outline-color"] != 1 || seen["border"] != 1 {
		t.Fatalf("the rules use colours %v times", seen)
	}
	for name, text := range map[string]string{"light": light, "dark": dark} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := map[string]string{}
			for _, c := range colour.FindAllStringSubmatch(text, -1) {
				of[c[1]] = c[2]
			}
			for _, use := range all {
				for _, ground := range use.grounds {
					if got := contrast(t, of[use.colour], of[ground]); got < use.least {
						t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", use.property, use.colour, ground, got, use.least)
					}
				}
			}
			for _, name := range custom.FindAllStringSubmatch(rules, -1) {
				if of[name[1]] == "" {
					t.Errorf("there is no colour %s", name[1])
				}
			}
		})
	}
}

// TestTheFocusIsVisible: the stylesheet shows the focus, and hides it nowhere but on the main part,
// to which the skip link leads.
func TestTheFocusIsVisible(t *testing.T) {
	t.Parallel()
	content, err := static.ReadFile("static/console.css")
	if err != nil {
		t.Fatal(err)
	}
	style := string(content)
	if !strings.Contains(style, "\n:focus-visible { outline: 2px solid var(--link)") || !strings.Contains(style, ".skip:focus { left: 0;") {
		t.Error("the stylesheet does not show the focus")
	}
	if rules := regexp.MustCompile(`(?m)^[^\n]*outline: (?:none|0)`).FindAllString(style, -1); len(rules) != 1 || !strings.HasPrefix(rules[0], "main {") {
		t.Errorf("rules that hide the focus: %q", rules)
	}
}
