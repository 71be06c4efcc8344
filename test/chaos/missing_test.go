package chaos

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/test/suite"
	"muster.dev/muster/test/suite/kept"
)

// TestFaultsWithoutOutcome: the page names each fault of the long run that has no row in
// outcomes.json, in code, and no other.
func TestFaultsWithoutOutcome(t *testing.T) {
	t.Parallel()
	all, err := kept.Read[Row]("outcomes.json")
	if err != nil {
		t.Fatal(err)
	}
	runs := runsOf(all)
	var want []string
	for _, trial := range slices.Concat(suite.Trials(apiAway), suite.Machines(), suite.Clocks(), suite.Policies()) {
		if runs[trial.String()] == 0 {
			want = append(want, trial.String())
		}
	}
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begins = "There is no outcome yet of: "
	sentences := regexp.MustCompile(`(?m)^`+begins+`.*$`).FindAllString(string(content), -1)
	if len(sentences) > 1 || (len(sentences) == 0) != (len(want) == 0) {
		t.Fatalf("%s has %d lines that begin with %q; want one if these have no outcome: %q", page, len(sentences), begins, want)
	}
	var named []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(strings.Join(sentences, ""), -1) {
		if match[1] != t.Name() { // which the page names, too
			named = append(named, match[1])
		}
	}
	slices.Sort(want)
	slices.Sort(named)
	if !slices.Equal(named, want) {
		t.Errorf("%s says that there is no outcome of\n%s\nwant\n%s", page, strings.Join(named, "\n"), strings.Join(want, "\n"))
	}
}
