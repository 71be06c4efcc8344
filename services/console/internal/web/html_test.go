package web

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// checkHTML checks what the policy refuses, and what people who do not see the page need.
func checkHTML(t *testing.T, content string) {
	t.Helper()
	document, err := html.Parse(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	found, labelled, ids := map[string]int{}, map[string]bool{}, map[string]bool{}
	var inputs []string
	for n := range document.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		found[n.Data]++
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has the attribute %s", n.Data, a.Key)
			}
		}
		if id := attributes["id"]; id != "" {
			if ids[id] {
				t.Errorf("the id %q is there twice", id)
			}
			ids[id] = true
		}
		switch n.Data {
		case "script":
			if n.FirstChild != nil || attributes["src"] == "" {
				t.Error("a script is written into the page")
			}
		case "style", "b":
			t.Errorf("there is a <%s>", n.Data)
		case "label":
			labelled[attributes["for"]] = true
		case "input", "select":
			if attributes["type"] != "hidden" && n.Parent.Data != "label" {
				inputs = append(inputs, attributes["id"])
			}
		case "th":
			if attributes["scope"] == "" {
				t.Error("a <th> has no scope")
			}
		}
	}
	for _, id := range inputs {
		if !labelled[id] {
			t.Errorf("the input %q has no label", id)
		}
	}
	if found["h1"] != 1 || found["main"] != 1 || found["title"] != 1 {
		t.Errorf("%d h1, %d main, %d title, want one of each", found["h1"], found["main"], found["title"])
	}
}
