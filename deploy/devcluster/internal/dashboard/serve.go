package dashboard

import (
	"context"
	"encoding/json"
	"fmt"

	utiltypes "github.com/ray-project/kuberay/ray-operator/controllers/ray/utils/types"
)

// serveConfig is the part of a Serve configuration that shows in its status.
type serveConfig struct {
	Applications []struct {
		Name        string `json:"name"`
		RoutePrefix string `json:"route_prefix"`
		Deployments []struct {
			Name string `json:"name"`
		} `json:"deployments"`
	} `json:"applications"`
}

// UpdateDeployments accepts a Serve configuration, whose applications run at once.
func (c *clusterClient) UpdateDeployments(_ context.Context, configJSON []byte) error {
	var config serveConfig
	if err := json.Unmarshal(configJSON, &config); err != nil {
		return fmt.Errorf("decoding the Serve configuration of RayCluster %s: %w", c.cluster, err)
	}
	c.jobs.mu.Lock()
	defer c.jobs.mu.Unlock()
	c.jobs.serve[c.cluster] = config
	return nil
}

// GetMultiApplicationStatus reports that all applications of the configuration run.
func (c *clusterClient) GetMultiApplicationStatus(context.Context) (map[string]*utiltypes.ServeApplicationStatus, error) {
	statuses := make(map[string]*utiltypes.ServeApplicationStatus)
	for name, details := range c.serveDetails() {
		status := details.ServeApplicationStatus
		status.Deployments = make(map[string]utiltypes.ServeDeploymentStatus)
		for deployment, d := range details.Deployments {
			status.Deployments[deployment] = d.ServeDeploymentStatus
		}
		statuses[name] = &status
	}
	return statuses, nil
}

// GetServeDetails reports the same at length.
func (c *clusterClient) GetServeDetails(context.Context) (*utiltypes.ServeDetails, error) {
	return &utiltypes.ServeDetails{Applications: c.serveDetails(), DeployMode: "MULTI_APP"}, nil
}

func (c *clusterClient) serveDetails() map[string]utiltypes.ServeApplicationDetails {
	c.jobs.mu.Lock()
	config := c.jobs.serve[c.cluster]
	c.jobs.mu.Unlock()
	applications := make(map[string]utiltypes.ServeApplicationDetails)
	for _, app := range config.Applications {
		details := utiltypes.ServeApplicationDetails{
			ServeApplicationStatus: utiltypes.ServeApplicationStatus{Name: app.Name, Status: "RUNNING"},
			RoutePrefix:            app.RoutePrefix,
			Deployments:            make(map[string]utiltypes.ServeDeploymentDetails),
		}
		for _, d := range app.Deployments {
			details.Deployments[d.Name] = utiltypes.ServeDeploymentDetails{
				ServeDeploymentStatus: utiltypes.ServeDeploymentStatus{Name: d.Name, Status: "HEALTHY"},
				RoutePrefix:           app.RoutePrefix,
			}
		}
		applications[app.Name] = details
	}
	return applications
}
