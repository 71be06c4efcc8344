package ray_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/ray"
)

func TestDeclaredRunTime(t *testing.T) {
	t.Parallel()
	const pod = `{"spec":{"containers":[{"name":"ray","image":"ray","resources":{"requests":{"cpu":"1"}}}]}}`
	const cluster = `{"headGroupSpec":{"rayStartParams":{},"template":` + pod + `}}`
	for name, c := range map[string]struct {
		kind, annotation, spec string
		want                   time.Duration
	}{
		"nothing":                     {ray.RayJob, "", "", 0},
		"deadline":                    {ray.RayJob, "", `"activeDeadlineSeconds":3600,`, time.Hour},
		"deadline of each attempt":    {ray.RayJob, "", `"activeDeadlineSeconds":3600,"backoffLimit":2,`, 3 * time.Hour},
		"what stays after it":         {ray.RayJob, "", `"activeDeadlineSeconds":60,"shutdownAfterJobFinishes":true,"ttlSecondsAfterFinished":30,`, 90 * time.Second},
		"annotation":                  {ray.RayJob, "90m", "", 90 * time.Minute},
		"annotation below deadline":   {ray.RayJob, "30m", `"activeDeadlineSeconds":3600,`, 30 * time.Minute},
		"annotation beyond deadline":  {ray.RayJob, "2h", `"activeDeadlineSeconds":3600,`, time.Hour},
		"annotation of a RayCluster":  {ray.RayCluster, "2h", "", 2 * time.Hour},
		"deadline longer than a life": {ray.RayJob, "", `"activeDeadlineSeconds":2147483647,"backoffLimit":2147483647,`, 10 * 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := "{}"
			if c.annotation != "" {
				annotations = fmt.Sprintf(`{"muster.dev/run-time":%q}`, c.annotation)
			}
			spec := cluster
			if c.kind == ray.RayJob {
				spec = `{"entrypoint":"true",` + c.spec + `"rayClusterSpec":` + cluster + `}`
			}
			object, err := ray.Read([]byte(fmt.Sprintf(
				`{"apiVersion":"ray.io/v1","kind":%q,"metadata":{"name":"w","annotations":%s},"spec":%s}`, c.kind, annotations, spec)))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if got := time.Duration(object.Life.RunTime); got != c.want {
				t.Errorf("%s: declared run time is %s, want %s", name, got, c.want)
			}
		})
	}
	_, err := ray.Read([]byte(`{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"w","annotations":{"muster.dev/run-time":"soon"}},"spec":` + cluster + `}`))
	if err == nil || !strings.Contains(err.Error(), "muster.dev/run-time") {
		t.Errorf("error of a run time that is none: %v", err)
	}
}
