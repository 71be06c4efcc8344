package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"
	"time"

	"muster.dev/muster/services/internal/client/output"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static
var static embed.FS

// Static has the files that pages name, at static/NAME.
func Static() fs.FS { return static }

// StaticNames lists these files.
func StaticNames() []string { return []string{"console.css", "icon.svg", "live.js"} }

// Renderer makes HTML. It may be used concurrently.
type Renderer struct{ all *template.Template }

// NewRenderer reads the templates, which are part of the program.
func NewRenderer() (*Renderer, error) {
	all, err := template.New("").Funcs(template.FuncMap{"t": text, "clock": clock}).ParseFS(templates, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("read the templates of the pages: %w", err)
	}
	return &Renderer{all}, nil
}

// text shows a text of people in one line; what moves a cursor or changes the direction of
// writing is written out, as on a terminal.
func text(value any) string { return output.Cell(fmt.Sprint(value)) }

// clock is a moment to the millisecond.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// Frame is what surrounds the content of a page.
type Frame struct {
	Title string
	// Path is the address of the page, for the menu.
	Path string
	// Caller is empty on pages before the login.
	Caller   string
	Operator bool
	Form     string
	// Live is where the region's updates come from; empty for a page that does not change.
	Live string
	At   string
	// To is where the page leads by itself; empty for none.
	To string
	// Before is above the region and stays as it is; Region is the content.
	Before, Region template.HTML
}

// Place is an entry of the menu.
type Place struct {
	Name, Link string
	Here       bool
}

// Places is the menu. Nodes and decisions are for operators alone.
func (f Frame) Places() []Place {
	places := []Place{{Name: "Overview", Link: "/"}, {Name: "Queues", Link: "/queues"}, {Name: "Workloads", Link: "/workloads"}}
	if f.Operator {
		places = append(places, Place{Name: "Nodes", Link: "/nodes"})
	}
	places = append(places, Place{Name: "Usage", Link: "/usage"}, Place{Name: "What if", Link: "/whatif"})
	if f.Operator {
		places = append(places, Place{Name: "Decisions", Link: "/decisions"})
	}
	for i := range places {
		p := &places[i]
		p.Here = f.Path == p.Link || p.Link != "/" && strings.HasPrefix(f.Path, p.Link+"/")
	}
	return places
}

// Region makes the content of a page from its model.
func (r *Renderer) Region(name string, model any) (template.HTML, error) {
	var html strings.Builder
	if err := r.all.ExecuteTemplate(&html, name, model); err != nil {
		return "", fmt.Errorf("make the page %q: %w", name, err)
	}
	return template.HTML(html.String()), nil
}

// Page writes a whole page.
func (r *Renderer) Page(w io.Writer, f Frame) error {
	if err := r.all.ExecuteTemplate(w, "layout", f); err != nil {
		return fmt.Errorf("write the page %q: %w", f.Title, err)
	}
	return nil
}
