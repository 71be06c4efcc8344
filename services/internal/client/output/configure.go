package output

import (
	"fmt"
	"io"
	"strconv"

	"muster.dev/muster/pkg/message/query"
)

// Outcomes prints what became of objects, in kubectl's words.
func Outcomes(w io.Writer, objects []query.Configured, dryRun bool) error {
	for _, o := range objects {
		suffix := ""
		if dryRun {
			suffix = " (dry run)" + wouldBe(o)
		}
		if _, err := fmt.Fprintf(w, "%s %s%s\n", Cell(o.Key.String()), o.Outcome, suffix); err != nil {
			return err
		}
	}
	return nil
}

// wouldBe returns for a queue whether it would admit anything.
func wouldBe(o query.Configured) string {
	gone := o.Outcome == query.Deleted || o.Outcome == query.NotThere
	switch {
	case gone || o.Kind != "ClusterQueue" && o.Kind != "LocalQueue":
		return ""
	case o.Held != "":
		return ": would not be active: " + Cell(o.Held)
	}
	return ": would be active"
}

// Applied is the table of objects that were applied.
func Applied(objects []query.Applied) Table {
	t := Table{Header: []string{"KIND", "NAMESPACE", "NAME", "OF", "VERSION"}}
	for _, o := range objects {
		of := "muster apply"
		if o.Origin != "" {
			of = "cluster " + o.Origin
		}
		t.Rows = append(t.Rows, []string{o.Kind, dash(o.Namespace), o.Name, of, strconv.FormatInt(o.Version, 10)})
	}
	return t
}
