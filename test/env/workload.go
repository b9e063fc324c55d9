package env

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/lightapi"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/members"
)

// WorkloadCluster stands for an installed OpenShift cluster: an API server with Nodes and the CRDs of ClusterVersion,
// ClusterOperator, Infrastructure, MachineConfigPool and MachineConfig, empty at first. No controller runs in it.
type WorkloadCluster struct {
	// Name is the name that the cluster was reserved under.
	Name string
	// Host and Port are where its API server listens.
	Host string
	Port int
	// Args are more flags of the API server, from its next start on: for a flag that is given twice the last one counts.
	Args []string

	// auditLog is where the API server keeps one; empty for most.
	auditLog   string
	env        *Env
	api        *apiServer
	light      *lightapi.Server // in place of a kube-apiserver; nil for most
	members    *members.Cluster // the etcd of its own; nil for most
	diversion  *diversion       // nil for most
	kubeconfig []byte
	config     *rest.Config
}

// ReserveWorkloadCluster prepares a workload cluster whose name is not used yet in this environment (letters, digits and
// dashes): its address and kubeconfig are final, but nobody answers before Start.
func (e *Env) ReserveWorkloadCluster(name string) (*WorkloadCluster, error) {
	api, err := e.newAPIServer(name, "workload-"+name)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare workload cluster %s: %w", name, err)
	}
	return e.workloadCluster(api)
}

// ReserveLightWorkloadCluster prepares one whose API is served by this process, as far as package lightapi can: it has
// no process, and keeps its requests in memory.
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

// Start runs the API server and returns when it serves the OpenShift kinds. After Stop it comes back with its old data.
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

// Stop ends the API server; its data stays until the environment is stopped.
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

// Audit makes the API server keep an audit log, from its next start on, and returns where it will be.
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

// Requests are those about resources that one user agent has sent so far. It fails where nobody keeps them: see [WorkloadCluster.Audit].
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

// Authority is the certificate authority of the API server, in PEM.
func (w *WorkloadCluster) Authority() []byte {
	return w.api.ca.PEM()
}

// Process is the API server, for whoever wants to kill or measure it.
func (w *WorkloadCluster) Process() *process.Process {
	return w.api.process
}

// Kubeconfig returns an administrator's kubeconfig: client certificate, and the certificate authority of the server.
func (w *WorkloadCluster) Kubeconfig() []byte {
	return w.kubeconfig
}

// Config is the administrator's client configuration.
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
