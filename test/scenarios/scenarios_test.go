package scenarios_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/whatif/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, content)
		})
	}
}

// play plays a scenario twice: it must come out as it says, and the same both
// times. A submission that is refused without a word in the scenario would take its
// point away.
func play(t *testing.T, content []byte) {
	t.Helper()
	parsed, err := scenario.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Name == "" {
		t.Error("has no name that says what it shows")
	}
	expectations := 0
	for _, step := range parsed.Steps {
		if step.Expect != nil {
			expectations++
		}
	}
	if expectations == 0 {
		t.Error("expects nothing")
	}
	outcome, err := scenario.Run(parsed)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range outcome.Steps {
		for _, difference := range step.Differences {
			t.Errorf("step %d, %s: %s", step.Step, step.Event, difference)
		}
		if len(step.Unexpected) > 0 {
			t.Errorf("step %d, %s: refused are %v, and the scenario does not say so: %+v", step.Step, step.Event, step.Unexpected, step.Rejected)
		}
	}
	again, err := scenario.Run(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outcome, again); diff != "" {
		t.Errorf("the second time it comes out otherwise:\n%s", diff)
	}
}

// examples are the YAML blocks of a page that are whole scenarios.
var examples = regexp.MustCompile("(?s)```yaml\n(name: .*?)```")

func TestExamplesOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := examples.FindAllSubmatch(page, -1)
	if len(found) == 0 {
		t.Fatal("the page has no example")
	}
	for _, example := range found {
		name, _, _ := strings.Cut(string(example[1]), "\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, example[1])
		})
	}
}
