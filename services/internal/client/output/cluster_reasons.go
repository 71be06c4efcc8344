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
		if _, err := fmt.Fprintf(w, "  - %s: %s\n", c.Cluster, Cell(c.Message)); err != nil {
			return err
		}
	}
	return nil
}
