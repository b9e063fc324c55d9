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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/etcdoperator"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/versionoperator"
)

// workload is the API server of a cluster that is installed. It is started when the first control-plane host brings the
// API up, and its address is known before.
type workload struct {
	server *env.WorkloadCluster

	// held is closed when hosts may bring the API up.
	held    chan struct{}
	release sync.Once

	// operate runs the operators of the cluster when its API is up, leave ends them, and the etcd that is its own.
	operate, leave []func()
	// versions plays what upgrades the cluster; nil for a cluster that cannot be. operator is the etcd operator of a
	// cluster whose etcd has members; nil for most.
	versions *versionoperator.Operator
	operator *etcdoperator.Operator
	wipes    *wipes

	mu     sync.Mutex
	client client.Client
	// rack has the hosts of the cluster.
	rack *hosts.Rack
	// operatorsHeld, while not nil, is closed when the operators may be available after a restart of the only master.
	operatorsHeld chan struct{}
	// stopped is true when the API server will never answer again.
	stopped bool
	// kubeconfigs counts how often assisted-service asked for the kubeconfig.
	kubeconfigs int
}

// reserveWorkload prepares the API server of a cluster, which is named like its ClusterDeployment: another one where a
// cluster of that name was deleted.
func (l *Lab) reserveWorkload(key types.NamespacedName, light bool) (*workload, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if former := l.workloads[key]; former != nil && !former.hasStopped() {
		return nil, fmt.Errorf("cluster %s exists in this laboratory", key)
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
	return nil, fmt.Errorf("no cluster %s was applied by the laboratory", key)
}

// workloadClient is what hosts reach of the API of their cluster.
func (l *Lab) workloadClient(ctx context.Context, namespace, name string) (client.Client, error) {
	w, err := l.workload(types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	select {
	case <-w.held:
		return w.up(l.life)
	case <-ctx.Done():
		return nil, fmt.Errorf("the API of the cluster is held back: %w", context.Cause(ctx))
	}
}

// workloadClientAs is the same under another identity.
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

// up starts the API server unless it runs. It belongs to the laboratory, not to the host that was first.
func (w *workload) up(ctx context.Context) (client.Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil, hosts.ErrClusterDeleted
	}
	if w.client != nil {
		return w.client, nil
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

// stop ends the API server for good, and the etcd that is its own.
func (w *workload) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	if w.client != nil {
		w.server.Stop()
	}
	w.end()
}

func (w *workload) hasStopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

// end ends the operators, and the etcd that is the cluster's own.
func (w *workload) end() {
	for _, leave := range w.leave {
		leave()
	}
}

func (w *workload) running() (client.Client, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.client == nil {
		return nil, errors.New("the API of the cluster was not brought up yet")
	}
	return w.client, nil
}

// workloadKubeconfig is what the simulated assisted-service writes into the admin kubeconfig secret: first when the
// installation starts, then again when it ends, with the authority of the cluster's ingress added.
func (l *Lab) workloadKubeconfig(_ context.Context, namespace, name string) ([]byte, error) {
	w, err := l.workload(types.NamespacedName{Namespace: namespace, Name: name})
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
	return trustToo(w.server.Kubeconfig(), l.Env.Authority().PEM())
}

// putKubeconfig puts the kubeconfig of the cluster's API server in the place of the one that the real assisted-service
// generated.
func (l *Lab) putKubeconfig(ctx context.Context, preparation assistedrest.Preparation) error {
	w, err := l.workload(preparation.Deployment)
	if err != nil {
		return err
	}
	return l.Assisted.PutKubeconfig(ctx, preparation.ClusterID, preparation.Since, w.server.Kubeconfig())
}

// trustToo adds a certificate authority to those that a kubeconfig trusts.
func trustToo(kubeconfig, authority []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read a kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.CertificateAuthorityData = slices.Concat(cluster.CertificateAuthorityData, authority)
	}
	return clientcmd.Write(*config)
}

// Final reports whether a kubeconfig is the one that assisted-service wrote when the installation ended: it trusts the
// ingress of the cluster too.
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
