package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedrest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/etcdoperator"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/versionoperator"
)

// workload is the API server of an installed cluster. Its address is known before it starts, which is when the
// first control-plane host starts the API.
type workload struct {
	server *env.WorkloadCluster

	// held is closed when hosts may start the API.
	held    chan struct{}
	release sync.Once

	// operate runs the operators of the cluster when its API runs. leave stops them and the cluster's own etcd.
	operate, leave []func()
	// versions is the simulated version operator; nil for a cluster that cannot be upgraded. operator is the
	// etcd operator of a cluster whose etcd has members, otherwise nil.
	versions *versionoperator.Operator
	operator *etcdoperator.Operator
	wipes    *wipes

	mu     sync.Mutex
	client client.Client
	// rack has the hosts of the cluster.
	rack *hosts.Rack
	// operatorsHeld, if not nil, is closed when the operators may be available after a restart of the only
	// master.
	operatorsHeld chan struct{}
	// stopped is true when the API server was stopped for good.
	stopped bool
	// kubeconfigs counts the requests of assisted-service for the kubeconfig.
	kubeconfigs int
}

// reserveWorkload prepares the API server of a cluster, named after its ClusterDeployment. A cluster with the
// name of a deleted one gets another API server.
func (l *Lab) reserveWorkload(key types.NamespacedName, light bool) (*workload, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if former := l.workloads[key]; former != nil && !former.hasStopped() {
		return nil, fmt.Errorf("cluster %s exists in this lab", key)
	}
	l.reserved++
	reserve := l.Env.ReserveWorkloadCluster
	if light {
		reserve = l.Env.ReserveLightWorkloadCluster
	}
	server, err := reserve(fmt.Sprintf("%s-%s-%d", key.Namespace, key.Name, l.reserved))
	if err != nil {
		return nil, err
	}
	w := &workload{server: server, held: make(chan struct{}), rack: l.Rack}
	if !light && !l.options.NoUpgrades {
		if err := l.useVersions(key, w); err != nil {
			return nil, err
		}
	}
	l.workloads[key] = w
	return w, nil
}

func (l *Lab) workload(key types.NamespacedName) (*workload, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.workloads[key]; w != nil {
		return w, nil
	}
	return nil, fmt.Errorf("the lab has no cluster %s", key)
}

// workloadOfUser is workload, which also prepares the API server of a cluster that a user has applied, see
// [Options.AllClusters].
func (l *Lab) workloadOfUser(key types.NamespacedName) (*workload, error) {
	w, err := l.workload(key)
	if err == nil && !w.hasStopped() || !l.options.AllClusters {
		return w, err
	}
	c, err := l.NewCluster(key)
	if err != nil {
		return nil, err
	}
	c.ReleaseAPI()
	return c.workload, nil
}

// workloadClient returns the client of hosts for the API of their cluster.
func (l *Lab) workloadClient(ctx context.Context, namespace, name string) (client.Client, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	w, err := l.workload(key)
	if err != nil {
		return nil, err
	}
	select {
	case <-w.held:
		return w.up(l.life, key)
	case <-ctx.Done():
		return nil, fmt.Errorf("the API of the cluster is blocked: %w", context.Cause(ctx))
	}
}

// workloadClientAs is workloadClient for another user.
func (l *Lab) workloadClientAs(ctx context.Context, namespace, name string, user rest.ImpersonationConfig) (client.Client, error) {
	if _, err := l.workloadClient(ctx, namespace, name); err != nil {
		return nil, err
	}
	w, err := l.workload(types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	config := w.server.Config()
	config.Impersonate = user
	c, err := client.New(config, client.Options{Scheme: l.Env.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client as %s: %w", user.UserName, err)
	}
	return c, nil
}

// up starts the API server unless it runs. The lab owns the API server, not the first host.
func (w *workload) up(ctx context.Context, key types.NamespacedName) (client.Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil, hosts.ErrClusterDeleted
	}
	if w.client != nil {
		return w.client, nil
	}
	if kubernetes := w.rack.KubernetesVersion(ctx, key); kubernetes != "" {
		w.server.ReportKubernetes(kubernetes)
	}
	if err := w.server.Start(ctx); err != nil {
		return nil, err
	}
	c, err := w.server.Client()
	if err != nil {
		return nil, err
	}
	w.client = c
	for _, operate := range w.operate {
		operate()
	}
	return c, nil
}

// stop stops the API server for good, and the cluster's own etcd.
func (w *workload) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.client != nil {
		w.server.Stop()
	}
	w.end()
}

// operates runs an operator while the API of the cluster runs.
func (w *workload) operates(l *Lab, run func(ctx context.Context)) {
	life, end := context.WithCancel(l.life)
	var running sync.WaitGroup
	w.operate = append(w.operate, func() {
		running.Go(func() { run(life) })
		l.running.Go(running.Wait)
	})
	w.leave = append(w.leave, func() {
		end()
		running.Wait()
	})
}

func (w *workload) hasStopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

// end stops the operators and the cluster's own etcd.
func (w *workload) end() {
	for _, leave := range w.leave {
		leave()
	}
}

func (w *workload) running() (client.Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.client == nil {
		return nil, errors.New("the API of the cluster was not started yet")
	}
	return w.client, nil
}

// workloadKubeconfig returns the kubeconfig that the simulated assisted-service writes to the admin kubeconfig
// Secret. At the end of the installation, the kubeconfig also has the CA of the cluster's ingress.
func (l *Lab) workloadKubeconfig(_ context.Context, namespace, name string) ([]byte, error) {
	w, err := l.workloadOfUser(types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.kubeconfigs++
	first := w.kubeconfigs == 1
	w.mu.Unlock()
	if first {
		return w.server.Kubeconfig(), nil
	}
	return addAuthority(w.server.Kubeconfig(), l.Env.Authority().PEM())
}

// putKubeconfig replaces the kubeconfig that the real assisted-service generated with that of the cluster's API
// server.
func (l *Lab) putKubeconfig(ctx context.Context, preparation assistedrest.Preparation) error {
	w, err := l.workload(preparation.Deployment)
	if err != nil {
		return err
	}
	return l.Assisted.PutKubeconfig(ctx, preparation.ClusterID, preparation.Since, w.server.Kubeconfig())
}

// addAuthority adds a CA to the CAs of a kubeconfig.
func addAuthority(kubeconfig, authority []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read a kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.CertificateAuthorityData = slices.Concat(cluster.CertificateAuthorityData, authority)
	}
	return clientcmd.Write(*config)
}

// Final reports whether assisted-service wrote the kubeconfig at the end of the installation: it also trusts
// the ingress of the cluster.
func Final(kubeconfig []byte) bool {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return false
	}
	for _, cluster := range config.Clusters {
		authorities, err := certutil.ParseCertsPEM(cluster.CertificateAuthorityData)
		if err != nil || len(authorities) < 2 {
			return false
		}
	}
	return true
}
