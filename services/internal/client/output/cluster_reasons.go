package output

import (
	"fmt"
	"io"

	"muster.dev/muster/pkg/spec/workload"
)

// explainClusters writes why a workload does not start in each of several clusters.
func explainClusters(w io.Writer, clusters []workload.ClusterReason) error {
	for i, c := range clusters {
		if i == 0 {
			if _, err := io.WriteString(w, "\nIn each cluster:\n"); err != nil {
				return err
			}
		}
		preferred := ""
		if c.Preferred {
			preferred = " (preferred)"
		}
		if _, err := fmt.Fprintf(w, "  - %s%s: %s\n", c.Cluster, preferred, Cell(c.Message)); err != nil {
			return err
		}
	}
	return nil
}
