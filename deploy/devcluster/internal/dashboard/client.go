package dashboard

import (
	"context"
	"errors"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils/dashboardclient"
	utiltypes "github.com/ray-project/kuberay/ray-operator/controllers/ray/utils/types"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

var _ utils.ClientProvider = (*Jobs)(nil)

// GetDashboardClient implements KubeRay's ClientProvider.
func (j *Jobs) GetDashboardClient(context.Context, manager.Manager) func(*rayv1.RayCluster, string) (dashboardclient.RayDashboardClientInterface, error) {
	return func(cluster *rayv1.RayCluster, _ string) (dashboardclient.RayDashboardClientInterface, error) {
		return &clusterClient{jobs: j, cluster: types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}}, nil
	}
}

// GetHttpProxyClient implements KubeRay's ClientProvider: the Serve proxies of
// all heads are healthy.
func (j *Jobs) GetHttpProxyClient(manager.Manager) func(string, string, string, int) utils.RayHttpProxyClientInterface {
	return func(string, string, string, int) utils.RayHttpProxyClientInterface { return healthyProxy{} }
}

type healthyProxy struct{}

func (healthyProxy) CheckProxyActorHealth(context.Context) error { return nil }

// clusterClient is the dashboard of one Ray cluster.
type clusterClient struct {
	jobs    *Jobs
	cluster types.NamespacedName
}

var _ dashboardclient.RayDashboardClientInterface = (*clusterClient)(nil)

func (c *clusterClient) key(id string) jobKey { return jobKey{cluster: c.cluster, id: id} }

// GetJobInfo returns the progress of a job. In InteractiveMode a person submits
// the job, and names it in the RayJob; here naming it submits it.
func (c *clusterClient) GetJobInfo(ctx context.Context, id string) (*utiltypes.RayJobInfo, error) {
	rayJob, err := c.jobs.rayJob(ctx, c.cluster.Namespace, id)
	if err != nil {
		return nil, err
	}
	if rayJob != nil && rayJob.Spec.SubmissionMode == rayv1.InteractiveMode {
		c.jobs.submit(c.key(id))
	}
	return c.jobs.info(ctx, c.key(id))
}

func (c *clusterClient) SubmitJob(_ context.Context, rayJob *rayv1.RayJob) (string, error) {
	c.jobs.submit(c.key(rayJob.Status.JobId))
	return rayJob.Status.JobId, nil
}

func (c *clusterClient) SubmitJobReq(_ context.Context, request *utiltypes.RayJobRequest) (string, error) {
	if request.SubmissionId == "" {
		return "", errors.New("the stand-in accepts only jobs with a submission id")
	}
	c.jobs.submit(c.key(request.SubmissionId))
	return request.SubmissionId, nil
}

func (c *clusterClient) StopJob(_ context.Context, id string) error {
	c.jobs.stop(c.key(id))
	return nil
}

func (c *clusterClient) DeleteJob(_ context.Context, id string) error {
	c.jobs.mu.Lock()
	defer c.jobs.mu.Unlock()
	delete(c.jobs.jobs, c.key(id))
	return nil
}

func (c *clusterClient) ListJobs(ctx context.Context) (*[]utiltypes.RayJobInfo, error) {
	c.jobs.mu.Lock()
	var keys []jobKey
	for key := range c.jobs.jobs {
		if key.cluster == c.cluster {
			keys = append(keys, key)
		}
	}
	c.jobs.mu.Unlock()
	infos := make([]utiltypes.RayJobInfo, 0, len(keys))
	for _, key := range keys {
		info, err := c.jobs.info(ctx, key)
		if err != nil {
			return nil, err
		}
		infos = append(infos, *info)
	}
	return &infos, nil
}

func (c *clusterClient) GetJobLog(context.Context, string) (*string, error) {
	log := "This job was played by the dev cluster; no Ray ran.\n"
	return &log, nil
}
