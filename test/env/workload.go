package env

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/lightapi"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
)

// WorkloadCluster replaces an installed OpenShift cluster. It is an API server with Nodes and the CRDs of
// ClusterVersion, ClusterOperator, Infrastructure, MachineConfigPool and MachineConfig, without objects at
// first. No controller runs in it.
type WorkloadCluster struct {
	// Name is the reserved name of the cluster.
	Name string
	// Host and Port are the address of its API server.
	Host string
	Port int
	// Args are additional flags of the API server from its next start on. The last value of a repeated flag
	// counts.
	Args []string

	// auditLog is the path of the audit log; empty without audit.
	auditLog   string
	env        *Env
	api        *apiServer
	light      *lightapi.Server // replaces the kube-apiserver; mostly nil
	members    *members.Cluster // the cluster's own etcd; mostly nil
	diversion  *diversion       // nil for most
	kubernetes atomic.Pointer[string]
	kubeconfig []byte
	config     *rest.Config
}

// ReserveWorkloadCluster prepares a workload cluster with a name that is unused in this environment (letters,
// digits and dashes). Its address and kubeconfig are final, but the API server does not run before Start.
func (e *Env) ReserveWorkloadCluster(name string) (*WorkloadCluster, error) {
	api, err := e.newAPIServer(name, "workload-"+name)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare workload cluster %s: %w", name, err)
	}
	return e.workloadCluster(api)
}

// ReserveLightWorkloadCluster prepares a workload cluster whose API this process serves, with the limits of
// package lightapi. It has no process, and records its requests in memory.
func (e *Env) ReserveLightWorkloadCluster(name string) (*WorkloadCluster, error) {
	api, err := e.reserveAPIServer(name)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare workload cluster %s: %w", name, err)
	}
	served, err := api.ca.ServerTLS()
	if err != nil {
		return nil, err
	}
	w, err := e.workloadCluster(api)
	if err == nil {
		w.light = lightapi.New(served)
	}
	return w, err
}

func (e *Env) workloadCluster(api *apiServer) (*WorkloadCluster, error) {
	kubeconfig, err := clientcmd.Write(*api.admin)
	if err != nil {
		return nil, fmt.Errorf("cannot write the kubeconfig of workload cluster %s: %w", api.name, err)
	}
	config, err := restConfig(api.admin)
	if err != nil {
		return nil, err
	}
	return &WorkloadCluster{Name: api.name, Host: loopback, Port: api.port, env: e, api: api, kubeconfig: kubeconfig, config: config}, nil
}

// NewWorkloadCluster reserves a workload cluster and starts it.
func (e *Env) NewWorkloadCluster(ctx context.Context, name string) (*WorkloadCluster, error) {
	w, err := e.ReserveWorkloadCluster(name)
	if err != nil {
		return nil, err
	}
	return w, w.Start(ctx)
}

// Start runs the API server and returns when it serves the OpenShift kinds. After Stop it restarts with its
// data.
func (w *WorkloadCluster) Start(ctx context.Context) error {
	if err := w.start(ctx); err != nil || w.diversion == nil {
		return err
	}
	return w.diversion.Start(ctx, w.address())
}

func (w *WorkloadCluster) start(ctx context.Context) error {
	if w.light != nil {
		return w.light.Start(ctx, w.api.address())
	}
	files := workloadCRDs
	if w.members != nil {
		files = slices.Concat(files, memberCRDs)
		if err := w.members.Start(ctx); err != nil {
			return err
		}
	}
	crds, err := w.env.openshiftCRDs(ctx, files)
	if err != nil {
		return err
	}
	// The service network is OpenShift's default.
	args := slices.Concat([]string{"--service-cluster-ip-range=172.30.0.0/16"}, w.Args)
	if err := w.env.startAPIServer(ctx, w.api, args...); err != nil {
		return err
	}
	c, err := w.Client()
	if err != nil {
		return err
	}
	return install(ctx, c, crds)
}

// Stop stops the API server. Its data stays until the environment is stopped.
func (w *WorkloadCluster) Stop() {
	if w.diversion != nil {
		w.diversion.Stop()
	}
	if w.light != nil {
		w.light.Stop()
		return
	}
	w.api.process.Stop()
}

// Audit enables the audit log of the API server from its next start on, and returns the path.
func (w *WorkloadCluster) Audit() (path string, err error) {
	policy, err := writeAuditPolicy(w.api.folder)
	if err != nil {
		return "", err
	}
	path = filepath.Join(w.env.dir, "audit-"+w.Name+".json")
	w.auditLog = path
	w.Args = append(w.Args, "--audit-policy-file="+policy, "--audit-log-path="+path, "--audit-log-maxsize=100000")
	return path, nil
}

// Requests returns the requests for resources with a user agent. It returns an error without audit log: see
// [WorkloadCluster.Audit].
func (w *WorkloadCluster) Requests(userAgent string) (audit.Requests, error) {
	var all audit.Requests
	switch {
	case w.light != nil:
		all = w.light.Requests()
	case w.auditLog == "":
		return nil, fmt.Errorf("workload cluster %s keeps no audit log", w.Name)
	default:
		var err error
		if all, err = audit.Read(w.auditLog); err != nil {
			return nil, err
		}
	}
	return all.Where(func(r audit.Request) bool { return r.UserAgent == userAgent && r.Resource != "" }), nil
}

// ReportKubernetes sets the version of Kubernetes that the API server reports to clients. Without effect on a
// kube-apiserver that is not diverted: it reports its own version.
func (w *WorkloadCluster) ReportKubernetes(version string) {
	w.kubernetes.Store(&version)
	if w.light != nil {
		w.light.ReportKubernetes(version)
	}
}

// Authority returns the CA of the API server, in PEM.
func (w *WorkloadCluster) Authority() []byte {
	return w.api.ca.PEM()
}

// Process returns the process of the API server, for example to kill or measure it.
func (w *WorkloadCluster) Process() *process.Process {
	return w.api.process
}

// Kubeconfig returns an administrator's kubeconfig with a client certificate and the CA of the server.
func (w *WorkloadCluster) Kubeconfig() []byte {
	return w.kubeconfig
}

// Config returns the administrator's client configuration.
func (w *WorkloadCluster) Config() *rest.Config {
	return rest.CopyConfig(w.config)
}

// Client returns an administrator's client without a cache; the API server must run.
func (w *WorkloadCluster) Client() (client.Client, error) {
	c, err := client.New(w.Config(), client.Options{Scheme: w.env.scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of workload cluster %s: %w", w.Name, err)
	}
	return c, nil
}
