package env

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// Options configure what to start and where to write files.
type Options struct {
	// Dir is the folder for logs, kubeconfig and audit log, created if needed. Default: a new folder in
	// _artifacts at the top of the repository, named after the time.
	Dir string
	// Out gets messages for people: what is built and started, and the durations. Default: none.
	Out io.Writer
	// CoreTools is the folder of test/tools with the version of Cluster API core. Default:
	// [components.DefaultCoreTools].
	CoreTools string
	// NoManagers leaves out all managers with their CRDs and RBAC. The API server and the controllers of
	// Kubernetes run, with the kinds of assisted-service, Hive, the Bare Metal Operator and Metal3's IP address
	// manager.
	NoManagers bool
	// Core and Metal3 configure the foreign managers, which cannot be disabled separately.
	Core, Metal3 ManagerOptions
	// BareMetal starts the Bare Metal Operator with a replaced client of Ironic, see
	// test/tools/baremetal-operator. Its flag --machines is the address of the simulated machines. Nil: the
	// caller reconciles BareMetalHosts.
	BareMetal *ManagerOptions
	// Bootstrap and ControlPlane configure the managers of this repository.
	Bootstrap, ControlPlane ManagerOptions
	// LeaveSignals is for a caller that handles interrupts itself and calls Stop. Otherwise SIGINT, SIGTERM and SIGHUP stop
	// the environment and then end the process.
	LeaveSignals bool
}

// Env is a running management cluster.
type Env struct {
	dir        string
	components *components.Builder
	group      *process.Group
	scheme     *runtime.Scheme
	etcdURL    string
	auditLog   string

	api        *apiServer
	config     *rest.Config
	client     client.Client
	kubeconfig string
	managers   map[string]*manager
}

// Start builds missing components, starts a management cluster and returns when all components serve. If it
// fails, no process keeps running, and the error names the log. ctx bounds only the start: the environment runs
// until Stop.
func Start(ctx context.Context, options Options) (*Env, error) {
	begin := time.Now()
	e, err := prepare(options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := e.group.Bound(ctx)
	defer cancel()
	if err := e.up(ctx, options); err != nil {
		e.Stop()
		return nil, err
	}
	e.group.Sayf("management cluster is up after %s (logs and kubeconfig in %s)", time.Since(begin).Round(100*time.Millisecond), e.dir)
	return e, nil
}

// prepare does all preparations that need no process.
func prepare(options Options) (*Env, error) {
	out := options.Out
	if out == nil {
		out = io.Discard
	}
	builder, err := components.NewBuilder(".", out)
	if err != nil {
		return nil, err
	}
	dir, err := artifactsDir(options.Dir, builder.Root())
	if err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	group, err := process.NewGroup(dir, out)
	if err != nil {
		return nil, err
	}
	if !options.LeaveSignals {
		group.HandleSignals()
	}
	return &Env{
		dir: dir, components: builder, group: group, scheme: scheme,
		auditLog: filepath.Join(dir, "audit.json"), kubeconfig: filepath.Join(dir, "kubeconfig"),
	}, nil
}

// artifactsDir creates the given folder, or a new one in _artifacts, and returns its absolute path.
func artifactsDir(wanted, root string) (string, error) {
	parent := filepath.Join(root, "_artifacts")
	if wanted != "" {
		parent = wanted
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("cannot create the artifacts folder: %w", err)
	}
	if wanted != "" {
		return filepath.Abs(wanted)
	}
	dir, err := os.MkdirTemp(parent, time.Now().Format("20060102-150405-"))
	if err != nil {
		return "", fmt.Errorf("cannot create a folder for this run: %w", err)
	}
	return dir, nil
}

// up starts all components in the order of their dependencies.
func (e *Env) up(ctx context.Context, options Options) error {
	needed := components.Base()
	if !options.NoManagers {
		needed = append(needed, components.Core(options.CoreTools), components.Metal3)
		if options.BareMetal != nil {
			needed = append(needed, components.BareMetal)
		}
	}
	if err := e.components.Build(ctx, needed...); err != nil {
		return err
	}
	if err := e.startEtcd(ctx); err != nil {
		return err
	}
	if err := e.startManagementAPI(ctx); err != nil {
		return err
	}
	crds, err := e.foreignCRDs(ctx, !options.NoManagers && options.BareMetal != nil)
	if err != nil {
		return err
	}
	e.managers = e.newManagers(options)
	for name, m := range e.managers {
		if err := m.load(ctx, e); err != nil {
			return fmt.Errorf("cannot prepare manager %s: %w", name, err)
		}
	}
	if err := e.installAll(ctx, crds); err != nil {
		return err
	}
	if err := e.startControllers(ctx); err != nil {
		return err
	}
	return e.startManagers(ctx)
}

// startManagementAPI starts the API server of the management cluster, with the admission plug-in of OpenShift
// hubs and an audit log.
func (e *Env) startManagementAPI(ctx context.Context) error {
	var err error
	if e.api, err = e.newAPIServer("management", "kube-apiserver"); err != nil {
		return err
	}
	policy, err := writeAuditPolicy(e.api.folder)
	if err != nil {
		return err
	}
	if err := e.startAPIServer(ctx, e.api,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--audit-policy-file="+policy,
		"--audit-log-path="+e.auditLog,
		"--audit-log-maxsize=100000", // MB: one file for the longest run
	); err != nil {
		return err
	}
	if err := writeKubeconfig(e.kubeconfig, e.api.admin); err != nil {
		return err
	}
	if e.config, err = restConfig(e.api.admin); err != nil {
		return err
	}
	if e.client, err = client.New(e.config, client.Options{Scheme: e.scheme}); err != nil {
		return fmt.Errorf("cannot create the client of the management cluster: %w", err)
	}
	return nil
}

// newManagers returns the enabled managers.
func (e *Env) newManagers(options Options) map[string]*manager {
	if options.NoManagers {
		return nil
	}
	// ClusterTopology enables ClusterClasses and is off by default in Cluster API core.
	core := options.Core
	core.Variables = map[string]string{"CLUSTER_TOPOLOGY": "true"}
	for name, value := range options.Core.Variables {
		core.Variables[name] = value
	}
	managers := map[string]*manager{
		Core:   e.foreignManager(Core, core, components.Core(options.CoreTools)),
		Metal3: e.foreignManager(Metal3, options.Metal3, components.Metal3),
	}
	if options.BareMetal != nil {
		managers[BareMetal] = e.foreignManager(BareMetal, *options.BareMetal, components.BareMetal)
	}
	for name, options := range map[string]ManagerOptions{Bootstrap: options.Bootstrap, ControlPlane: options.ControlPlane} {
		if options.Disabled {
			continue
		}
		managers[name] = &manager{
			name: name, options: options,
			program: func(ctx context.Context) (string, error) { return e.components.Manager(ctx, name) },
			manifests: func(ctx context.Context) ([]byte, error) {
				return e.ownManifests(ctx, name, cmp.Or(options.Manifests, "default"))
			},
		}
	}
	return managers
}

// ownManifests returns the manifests of a manager of this repository and the additional ones for OpenShift
// hubs, whose admission plug-in requires them.
func (e *Env) ownManifests(ctx context.Context, name, variant string) ([]byte, error) {
	folder := filepath.Join(e.components.Root(), "config", name)
	manifests, err := e.components.Kustomize(ctx, filepath.Join(folder, variant))
	if err != nil {
		return nil, err
	}
	file := "openshift-hub.yaml"
	if variant == "namespaced" {
		file = "openshift-hub-namespaced.yaml"
	}
	openshift, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests for OpenShift hubs: %w", err)
	}
	return bytes.Join([][]byte{manifests, openshift}, []byte("---\n")), nil
}

// foreignManager returns a manager whose program and manifests come from the same module.
func (e *Env) foreignManager(name string, options ManagerOptions, component components.Component) *manager {
	return &manager{
		name: name, options: options,
		program:   func(ctx context.Context) (string, error) { return e.components.Program(ctx, component) },
		manifests: func(ctx context.Context) ([]byte, error) { return e.components.Manifests(ctx, component) },
	}
}

// installAll applies the manifests of all managers, including webhook configurations. No object with a webhook
// is written before the managers run; by then the API server knows the webhooks.
func (e *Env) installAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, m := range e.managers {
		objects = append(objects, m.objects...)
	}
	return install(ctx, e.client, objects)
}

func (e *Env) startManagers(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range e.managers {
		group.Go(func() error { return m.start(ctx, e) })
	}
	return group.Wait()
}

// Client returns an administrator's client of the management cluster, without a cache.
func (e *Env) Client() client.Client {
	return e.client
}

// Config returns the administrator's client configuration of the management cluster, without client-side throttling.
func (e *Env) Config() *rest.Config {
	return rest.CopyConfig(e.config)
}

// Etcd returns the URL of etcd, without credentials, and the prefix of the keys of the management cluster.
func (e *Env) Etcd() (url, prefix string) {
	return e.etcdURL, e.api.prefix()
}

// Scheme returns the scheme of the management and workload clusters. It excludes the kinds of CAPM3, which are
// used as unstructured objects.
func (e *Env) Scheme() *runtime.Scheme {
	return e.scheme
}

// Kubeconfig returns the path of the administrator's kubeconfig of the management cluster.
func (e *Env) Kubeconfig() string {
	return e.kubeconfig
}

// Dir returns the folder of the logs.
func (e *Env) Dir() string {
	return e.dir
}

// Manager returns a manager (see the constants Core, Metal3, BareMetal, Bootstrap and ControlPlane), or nil if
// it is disabled.
func (e *Env) Manager(name string) *process.Process {
	if m := e.managers[name]; m != nil {
		return m.process
	}
	return nil
}

// Webhooks returns the URL of a manager's webhooks or runtime extension, and the CAs of its certificate.
func (e *Env) Webhooks(name string) (url string, authorities []byte) {
	server := e.managers[name].webhook
	return server.url, server.caBundle
}

// Requests returns the requests of a user (see [process.Process]; empty for all users) that arrived since a
// point in time.
func (e *Env) Requests(user string, since time.Time) (audit.Requests, error) {
	requests, err := audit.Read(e.auditLog)
	if err != nil {
		return nil, err
	}
	return requests.Where(func(r audit.Request) bool {
		return (user == "" || r.User == user) && !r.Time.Before(since)
	}), nil
}

// AuditLog returns the path of the audit log of the management cluster.
func (e *Env) AuditLog() string {
	return e.auditLog
}

// Authority returns the CA of the management cluster.
func (e *Env) Authority() *pki.Authority {
	return e.api.ca
}

// Components returns the builder of components, including those that this environment does not run.
func (e *Env) Components() *components.Builder {
	return e.components
}

// Group returns the processes of the environment. Callers may add processes.
func (e *Env) Group() *process.Group {
	return e.group
}

// Stop stops all processes, dependent ones first, and removes temporary data. Logs stay. It may be called more
// than once.
func (e *Env) Stop() {
	e.group.Stop()
}
