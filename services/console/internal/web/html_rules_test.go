package web

import (
	"strings"
	"testing"
)

// TestRulesOfPages: each rule finds the page that breaks it, and nothing in one that keeps all.
func TestRulesOfPages(t *testing.T) {
	t.Parallel()
	const head, good = `<!doctype html><html lang="en"><title>T</title><a href="#main">Skip</a>`, `<main id="main"><h1>T</h1>`
	for name, c := range map[string]struct{ page, want string }{
		"all kept":              {head + good + `<h2>A</h2><svg aria-hidden="true"></svg><label>A <input></label><a class="x" href="/">B</a>`, ""},
		"a style":               {head + good + `<p style="x">`, "attribute style"},
		"a handler":             {head + good + `<p onclick="x">`, "attribute onclick"},
		"a script":              {head + good + `<script>x</script>`, "a script is written"},
		"what users wrote":      {head + good + `<b>x</b>`, "there is a <b>"},
		"no language":           {strings.Replace(head, ` lang="en"`, "", 1) + good, "no lang"},
		"two h1":                {head + good + `<h1>T</h1>`, "2 <h1>"},
		"no main":               {head + `<h1>T</h1>`, "0 <main>"},
		"a level left out":      {head + good + `<h3>A</h3>`, "after a heading of level 1"},
		"an empty heading":      {head + good + `<h2></h2>`, "a <h2> is empty"},
		"an id twice":           {head + good + `<p id="a"><p id="a">`, `"a" is there twice`},
		"a label of nothing":    {head + good + `<label for="x">A</label>`, "no such id"},
		"a section of nothing":  {head + good + `<section aria-labelledby="x">`, "no such id"},
		"an input":              {head + good + `<input id="x">`, "<input>"},
		"a label without text":  {head + good + `<label><select><option>a</option></select></label>`, "<select>"},
		"an svg":                {head + good + `<svg></svg>`, "<svg>"},
		"an svg with a title":   {head + good + `<svg><title>A</title></svg>`, ""},
		"an img":                {head + good + `<img src="x">`, "<img>"},
		"a link without text":   {head + good + `<a href="/"></a>`, "<a>"},
		"a nav":                 {head + good + `<nav>x</nav>`, "<nav>"},
		"a cell of figures":     {head + good + `<ul class="heat"><li><a href="/">3/8</a></ul>`, "no words"},
		"a cell with words":     {head + good + `<ul class="heat"><li><a href="/" aria-label="gpu-1: 3 of 8 used">3/8</a></ul>`, ""},
		"fields without legend": {head + good + `<fieldset><label>A <input></label></fieldset>`, "<fieldset>"},
		"a header":              {head + good + `<div role="region" aria-label="A" tabindex="0"><table><tr><th>A</table></div>`, "has scope"},
		"a wide table":          {head + good + `<table><tr><th scope="col">A</table>`, "no region"},
		"no skip link":          {strings.Replace(head, "#main", "/", 1) + good, "the first link"},
		"an order of focus":     {head + good + `<p tabindex="3">`, "tabindex 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := faultsOf(c.page)
			if err != nil || c.want == "" && len(found) > 0 || c.want != "" && !strings.Contains(strings.Join(found, "\n"), c.want) {
				t.Errorf("%v, faults %q, want %q", err, found, c.want)
			}
		})
	}
}
