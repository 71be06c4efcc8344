package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"muster.dev/muster/deploy/devcluster/internal/instance"
)

// announcement is the line on standard output that announces an instance that is ready.
type announcement struct {
	Name         string  `json:"name"`
	Kubeconfig   string  `json:"kubeconfig"`
	APIServer    string  `json:"apiServer"`
	Dir          string  `json:"dir"`
	Nodes        int     `json:"nodes"`
	ReadySeconds float64 `json:"readySeconds"`
}

func announce(out io.Writer, dir instance.Dir, s instance.State) error {
	line, err := json.Marshal(announcement{
		Name: s.Name, Kubeconfig: s.Kubeconfig, APIServer: s.APIServer, Dir: dir.Path,
		Nodes: s.Nodes, ReadySeconds: s.ReadySeconds,
	})
	if err != nil {
		return fmt.Errorf("encoding the announcement: %w", err)
	}
	if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
		return fmt.Errorf("announcing readiness: %w", err)
	}
	return nil
}

// seconds rounds to milliseconds, which is what a reader wants.
func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond)) / float64(time.Second)
}
