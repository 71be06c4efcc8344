package web

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// checkHTML checks what the policy refuses, and what people who do not see the page need.
func checkHTML(t *testing.T, content string) {
	t.Helper()
	found, err := faultsOf(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range found {
		t.Error(fault)
	}
}

// document is a page, as its rules see it.
type document struct {
	elements []*html.Node
	byID     map[string]*html.Node
	faults   []string
}

func (d *document) fault(format string, args ...any) {
	d.faults = append(d.faults, fmt.Sprintf(format, args...))
}

// faultsOf lists which rules a page breaks: those of its own policy, and those of WCAG 2 that
// can be read from HTML.
func faultsOf(content string) ([]string, error) {
	root, err := html.Parse(strings.NewReader(content))
	if err != nil {
		return nil, err
	}
	d := &document{byID: map[string]*html.Node{}}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		d.elements = append(d.elements, n)
		if id := value(n, "id"); id != "" {
			if d.byID[id] != nil {
				d.fault("the id %q is there twice", id)
			}
			d.byID[id] = n
		}
	}
	for _, rule := range []func(){d.policy, d.structure, d.headings, d.references, d.names, d.tables, d.skipLink} {
		rule()
	}
	return d.faults, nil
}

// value is that of an attribute; empty when it is missing.
func value(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf is what a screen reader reads of an element: its text without that of controls.
func textOf(n *html.Node) string {
	var text strings.Builder
	for inner := range n.Descendants() {
		if inner.Type == html.TextNode && !slices.Contains([]string{"option", "script"}, inner.Parent.Data) {
			text.WriteString(inner.Data)
		}
	}
	return strings.TrimSpace(text.String())
}

const letters = "abcdefghijklmnopqrstuvwxyz"

// inMap reports whether an element is in a map of nodes, where colours show the use.
func inMap(n *html.Node) bool {
	for outer := range n.Ancestors() {
		if slices.Contains(strings.Fields(value(outer, "class")), "heat") {
			return true
		}
	}
	return false
}

// policy: a page has no script or style of its own, and no element that only a name of users
// could have brought in.
func (d *document) policy() {
	for _, n := range d.elements {
		for _, a := range n.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				d.fault("<%s> has the attribute %s", n.Data, a.Key)
			}
		}
		switch {
		case n.Data == "style" || n.Data == "b":
			d.fault("there is a <%s>", n.Data)
		case n.Data == "script" && (n.FirstChild != nil || value(n, "src") == ""):
			d.fault("a script is written into the page")
		}
	}
}

// structure: a page has a language, a title and a main part, and no order of focus of its own.
func (d *document) structure() {
	found := map[string]int{}
	for _, n := range d.elements {
		if n.Data == "title" && n.Parent.Data != "head" { // that of a picture
			continue
		}
		found[n.Data]++
		if n.Data == "html" && value(n, "lang") == "" {
			d.fault("the page has no lang")
		}
		if n.Data == "title" && textOf(n) == "" {
			d.fault("the title is empty")
		}
		if index := value(n, "tabindex"); index != "" && index != "0" && index != "-1" {
			d.fault("<%s> has tabindex %s", n.Data, index)
		}
	}
	for _, name := range []string{"h1", "main", "title"} {
		if found[name] != 1 {
			d.fault("%d <%s>, want one", found[name], name)
		}
	}
}

// headings: none is empty, and none is more than a level below the one before.
func (d *document) headings() {
	last := 0
	for _, n := range d.elements {
		if len(n.Data) != 2 || n.Data[0] != 'h' || n.Data[1] < '1' || n.Data[1] > '6' {
			continue
		}
		level := int(n.Data[1] - '0')
		if level > last+1 {
			d.fault("<%s> %q comes after a heading of level %d", n.Data, textOf(n), last)
		}
		if textOf(n) == "" {
			d.fault("a <%s> is empty", n.Data)
		}
		last = level
	}
}

// references: what an element names is there.
func (d *document) references() {
	for _, n := range d.elements {
		for _, name := range []string{"for", "aria-labelledby", "aria-describedby"} {
			for _, id := range strings.Fields(value(n, name)) {
				if d.byID[id] == nil {
					d.fault("<%s> has %s=%q, and there is no such id", n.Data, name, id)
				}
			}
		}
	}
}

// names: whatever has to be announced has a name.
func (d *document) names() {
	labelled := map[string]bool{}
	for _, n := range d.elements {
		if n.Data == "label" && textOf(n) != "" {
			labelled[value(n, "for")] = true
		}
	}
	for _, n := range d.elements {
		label := strings.TrimSpace(value(n, "aria-label"))
		hidden := value(n, "aria-hidden") == "true"
		var named bool
		switch n.Data {
		case "input", "select", "textarea", "meter":
			named = value(n, "type") == "hidden" || label != "" || labelled[value(n, "id")] && value(n, "id") != "" || n.Parent.Data == "label" && textOf(n.Parent) != ""
		case "a", "button":
			named = label != "" || textOf(n) != ""
		case "svg":
			named = hidden || value(n, "role") == "img" && label != "" || textOfFirst(n, "title") != ""
		case "img":
			named = value(n, "alt") != "" || hidden
		case "nav", "form":
			named = label != "" || value(n, "aria-labelledby") != "" || n.Data == "form" && value(n, "method") == "post"
		case "fieldset":
			named = textOfFirst(n, "legend") != ""
		default:
			named = value(n, "role") != "region" || label != ""
		}
		if !named {
			d.fault("<%s> has no name: %v", n.Data, n.Attr)
		}
		if n.Data == "a" && inMap(n) && !strings.ContainsAny(label+textOf(n), letters) {
			d.fault("a cell of the map has no words: %v", n.Attr)
		}
	}
}

// textOfFirst is the text of the first element of a name within another.
func textOfFirst(n *html.Node, name string) string {
	for inner := range n.Descendants() {
		if inner.Type == html.ElementNode && inner.Data == name {
			return textOf(inner)
		}
	}
	return ""
}

// tables: each has headers of columns, each header its scope, and what is wider than the page is
// reached with the keyboard.
func (d *document) tables() {
	for _, n := range d.elements {
		switch n.Data {
		case "th":
			if scope := value(n, "scope"); scope != "col" && scope != "row" {
				d.fault("a <th> %q has scope %q", textOf(n), scope)
			}
			if textOf(n) == "" {
				d.fault("a <th> is empty")
			}
		case "table":
			if textOfFirst(n, "th") == "" {
				d.fault("a table has no headers")
			}
			if value(n.Parent, "tabindex") != "0" || value(n.Parent, "role") != "region" {
				d.fault("a table is in no region that the keyboard reaches")
			}
		}
	}
}

// skipLink: the first link leads past the menu.
func (d *document) skipLink() {
	for _, n := range d.elements {
		if n.Data != "a" {
			continue
		}
		id, is := strings.CutPrefix(value(n, "href"), "#")
		if target := d.byID[id]; !is || target == nil || target.Data != "main" {
			d.fault("the first link leads to %q, want the main part", value(n, "href"))
		}
		return
	}
	d.fault("there is no link")
}
