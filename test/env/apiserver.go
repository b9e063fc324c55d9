package env

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// adminGroup is the group with all rights, even before any RBAC rule exists.
const adminGroup = "system:masters"

// etcdQuota is the maximum that etcd recommends. With the default of 2 GiB, etcd would reject writes of a hub
// with thousands of clusters.
const etcdQuota = 8 << 30

// collectLess makes API servers collect garbage less often, which is most of their idle work with 1,000
// clusters. A small API server stays below 1 GiB. A large one collects more often near the limit, which is well
// above the needs of a hub with thousands of clusters.
var collectLess = []string{"GOGC=400", "GOMEMLIMIT=6GiB"}

// startEtcd starts an etcd that all API servers of an environment share, each with its own prefix.
func (e *Env) startEtcd(ctx context.Context) error {
	program, err := e.components.Program(ctx, components.Etcd)
	if err != nil {
		return err
	}
	clientPort, err := e.group.Port()
	if err != nil {
		return err
	}
	peerPort, err := e.group.Port()
	if err != nil {
		return err
	}
	e.etcdURL = "http://127.0.0.1:" + strconv.Itoa(clientPort)
	peerURL := "http://127.0.0.1:" + strconv.Itoa(peerPort)
	etcd := e.group.New("etcd", process.Storage, program,
		"--name=default",
		"--data-dir="+filepath.Join(e.group.Temp(), "etcd"),
		"--listen-client-urls="+e.etcdURL,
		"--advertise-client-urls="+e.etcdURL,
		"--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=default="+peerURL,
		"--unsafe-no-fsync", // the data is needed for this run only
		"--quota-backend-bytes="+strconv.Itoa(etcdQuota),
		"--log-level=warn",
	)
	etcd.Ready = process.Probe(http.DefaultClient, e.etcdURL+"/readyz")
	return e.group.Start(ctx, etcd)
}

// loopback is the address of all servers.
const loopback = "127.0.0.1"

// apiServer is an API server with its CA and an administrator.
type apiServer struct {
	name   string
	port   int
	folder string // keys and certificates of a kube-apiserver
	// etcd are the flags for its storage; nil means the shared etcd.
	etcd []string
	ca   *pki.Authority
	// admin is the administrator's kubeconfig.
	admin   *clientcmdapi.Config
	process *process.Process
}

func (a *apiServer) url() string { return "https://" + a.address() }

func (a *apiServer) address() string { return net.JoinHostPort(loopback, strconv.Itoa(a.port)) }

// prefix is the prefix of its keys in etcd.
func (a *apiServer) prefix() string {
	return "/" + a.name
}

// reserveAPIServer returns an API server with an address and credentials.
func (e *Env) reserveAPIServer(name string) (*apiServer, error) {
	port, err := e.group.Port()
	if err != nil {
		return nil, err
	}
	ca, err := pki.New(name)
	if err != nil {
		return nil, err
	}
	certificate, key, err := ca.Client("admin", adminGroup)
	if err != nil {
		return nil, err
	}
	a := &apiServer{name: name, port: port, ca: ca}
	a.admin = a.kubeconfig("admin", &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
	return a, nil
}

// newAPIServer prepares a kube-apiserver with its final address and credentials, without starting it.
func (e *Env) newAPIServer(name string, logName string) (*apiServer, error) {
	a, err := e.reserveAPIServer(name)
	if err != nil {
		return nil, err
	}
	a.folder = filepath.Join(e.group.Temp(), logName)
	if err := a.ca.ServerFiles(a.folder); err != nil {
		return nil, err
	}
	signingKey, err := pki.NewSigningKey()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(a.folder, "sa.key"), signingKey, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write a signing key: %w", err)
	}
	a.process = e.group.New(logName, process.APIServers, "")
	a.process.Env = collectLess
	a.process.Ready, err = a.probe("/readyz")
	return a, err
}

// startAPIServer runs the API server with RBAC and TLS and additional flags.
func (e *Env) startAPIServer(ctx context.Context, a *apiServer, extra ...string) error {
	program, err := e.components.Program(ctx, components.APIServer)
	if err != nil {
		return err
	}
	file := func(name string) string { return filepath.Join(a.folder, name) }
	etcd := a.etcd
	if etcd == nil {
		etcd = []string{"--etcd-servers=" + e.etcdURL}
	}
	a.process.Path = program
	a.process.Args = slices.Concat(etcd, []string{
		"--etcd-prefix=" + a.prefix(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(a.port),
		"--endpoint-reconciler-type=none", // a loopback address is no valid endpoint
		"--tls-cert-file=" + file("tls.crt"),
		"--tls-private-key-file=" + file("tls.key"),
		"--client-ca-file=" + file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file("sa.key"),
		"--service-account-signing-key-file=" + file("sa.key"),
		"--authorization-mode=RBAC",
	}, extra)
	return e.group.Start(ctx, a.process)
}

// startControllers starts the controllers of Kubernetes. Call it after the CRDs are installed: the garbage
// collector discovers new kinds only every 30 s (test/tools/kubernetes).
func (e *Env) startControllers(ctx context.Context) error {
	program, err := e.components.Program(ctx, components.Controllers)
	if err != nil {
		return err
	}
	port, err := e.group.Port()
	if err != nil {
		return err
	}
	const user = "system:kube-controller-manager"
	certificate, key, err := e.api.ca.Client(user)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(e.group.Temp(), "kube-controllers.kubeconfig")
	if err := writeKubeconfig(kubeconfig,
		e.api.kubeconfig(user, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})); err != nil {
		return err
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	controllers := e.group.New("kube-controllers", process.Clients, program,
		"--kubeconfig="+kubeconfig,
		"--service-account-private-key-file="+filepath.Join(e.api.folder, "sa.key"),
		"--health-addr="+address,
	)
	controllers.Ready = process.Probe(http.DefaultClient, "http://"+address+"/healthz")
	return e.group.Start(ctx, controllers)
}

// probe returns a health check that requests path as administrator.
func (a *apiServer) probe(path string) (func(context.Context) error, error) {
	config, err := restConfig(a.admin)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of %s: %w", a.name, err)
	}
	return process.Probe(client, a.url()+path), nil
}

// writeAuditPolicy writes the audit policy of an API server to a folder.
func writeAuditPolicy(folder string) (string, error) {
	path := filepath.Join(folder, "audit-policy.yaml")
	if err := os.WriteFile(path, []byte(audit.Policy), 0o644); err != nil {
		return "", fmt.Errorf("cannot write the audit policy: %w", err)
	}
	return path, nil
}
