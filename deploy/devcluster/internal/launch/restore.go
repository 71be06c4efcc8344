package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/devcluster/internal/controlplane"
	"muster.dev/muster/deploy/devcluster/internal/instance"
)

// savedEtcd is where the data of etcd is saved to, beside it.
const savedEtcd = "etcd-saved"

// SaveEtcd copies the data of an instance's etcd, which stands still meanwhile: what
// is on the disk at one moment, as after a crash.
func SaveEtcd(dir instance.Dir, etcd int) (err error) {
	if err := os.RemoveAll(dir.File(savedEtcd)); err != nil {
		return fmt.Errorf("saving etcd: %w", err)
	}
	if err := syscall.Kill(etcd, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("saving etcd: stopping process %d: %w", etcd, err)
	}
	defer func() { err = errors.Join(err, syscall.Kill(etcd, syscall.SIGCONT)) }()
	if err := os.CopyFS(dir.File(savedEtcd), os.DirFS(dir.File(Etcd))); err != nil {
		return fmt.Errorf("saving etcd: %w", err)
	}
	return nil
}

// Restore brings etcd back to what was saved. All components are started again, as
// Kubernetes wants it: what they remember of objects is of another time.
func (c *Cluster) Restore(ctx context.Context) error {
	dir := c.config.Dir
	if _, err := os.Stat(dir.File(savedEtcd)); err != nil {
		return fmt.Errorf("restoring etcd: %w", err)
	}
	c.endAll()
	if err := os.RemoveAll(dir.File(Etcd)); err != nil {
		return fmt.Errorf("restoring etcd: %w", err)
	}
	if err := os.CopyFS(dir.File(Etcd), os.DirFS(dir.File(savedEtcd))); err != nil {
		return fmt.Errorf("restoring etcd: %w", err)
	}
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", dir.AdminKubeconfig())
	if err != nil {
		return fmt.Errorf("reading back the kubeconfig: %w", err)
	}
	config.Timeout = requestTimeout
	if err := controlplane.WaitHealthy(ctx, config, "/readyz"); err != nil {
		return err
	}
	for _, name := range c.among(Kubelet, RayOperator) {
		if _, err := c.component(name).WaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// endAll ends all components and forgets them.
func (c *Cluster) endAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all sync.WaitGroup
	for _, component := range c.components {
		c.replaced[component] = true
		all.Go(component.Kill)
	}
	all.Wait()
	c.components = nil
}
