package output_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/services/internal/client/output"
)

func resultOf(policy string, jobs int, covered ...float64) simulation.Result {
	r := simulation.Result{Policy: policy, ETA: &simulation.ETA{Estimated: jobs}}
	for i, c := range covered {
		r.Reliability = append(r.Reliability, simulation.Coverage{Quantile: float64(i+1) / 10, Covered: c})
	}
	return r
}

// TestReliability: a diagram is XML with a bar for each quantile, as high as its part, and has the
// numbers as text.
func TestReliability(t *testing.T) {
	t.Parallel()
	svg, err := output.Reliability(resultOf(`<easy> & "x"`, 40, 0, 0.25, 1))
	if err != nil {
		t.Fatal(err)
	}
	var heights []float64
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		start, is := token.(xml.StartElement)
		if !is || start.Name.Local != "rect" {
			continue
		}
		of := map[string]string{}
		for _, a := range start.Attr {
			of[a.Name.Local] = a.Value
		}
		if of["class"] == "bar" {
			height, err := strconv.ParseFloat(of["height"], 64)
			if err != nil {
				t.Fatal(err)
			}
			heights = append(heights, height)
		}
	}
	if fmt.Sprint(heights) != "[0 90 360]" {
		t.Errorf("the bars have the heights %v, want 0, a quarter and all of 360", heights)
	}
	for _, text := range []string{"40 jobs", "p10: 0.0 %. p20: 25.0 %. p30: 100.0 %.", "&lt;easy&gt; &amp;"} {
		if !strings.Contains(svg, text) {
			t.Errorf("the diagram lacks %q", text)
		}
	}
	if _, err := output.Reliability(simulation.Result{ETA: &simulation.ETA{}}); !errors.Is(err, output.ErrNoEstimates) {
		t.Errorf("of no estimates: %v", err)
	}
}

// TestTheDiagramOfThePage: the diagram of docs/estimates.md shows the numbers of the table below it.
func TestTheDiagramOfThePage(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "..", "..", "docs")
	page, err := os.ReadFile(filepath.Join(docs, "estimates.md"))
	if err != nil {
		t.Fatal(err)
	}
	jobs := regexp.MustCompile(`KTH-SP2 on 100 nodes, ([0-9,]+) of`).FindSubmatch(page)
	row := regexp.MustCompile(`(?m)^\| started by it \|(.*)\|$`).FindSubmatch(page)
	if jobs == nil || row == nil || !strings.Contains(string(page), "(images/eta-reliability.svg)") {
		t.Fatal("the page has no diagram, or no table of it")
	}
	estimated, err := strconv.Atoi(strings.ReplaceAll(string(jobs[1]), ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	var covered []float64
	for cell := range strings.SplitSeq(string(row[1]), "|") {
		part, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
		if err != nil || math.IsNaN(part) {
			t.Fatalf("a cell of the table: %v", err)
		}
		covered = append(covered, part)
	}
	if len(covered) != 9 {
		t.Fatalf("the table has %d quantiles, want 9", len(covered))
	}
	want, err := output.Reliability(resultOf("easy", estimated, covered...))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(docs, "images", "eta-reliability.svg")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%v: %s does not show the numbers of its page: go test ./services/internal/client/output -run TestTheDiagramOfThePage -update", err, path)
	}
}
