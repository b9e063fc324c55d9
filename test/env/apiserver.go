package env

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// adminGroup is the group that may do everything, before any RBAC rule exists.
const adminGroup = "system:masters"

// kubernetesControllers are the controllers of Kubernetes that Cluster API relies on: garbage collection, deletion of
// namespaces, ServiceAccounts, and aggregation of ClusterRoles (which gives core its rights on the kinds of providers).
const kubernetesControllers = "garbage-collector-controller,namespace-controller,serviceaccount-controller," +
	"serviceaccount-token-controller,clusterrole-aggregation-controller"

// startEtcd starts one etcd; all API servers of an environment share it, each under its own prefix.
func (e *Env) startEtcd(ctx context.Context) error {
	program, err := e.tools.program(ctx, etcdBuild)
	if err != nil {
		return err
	}
	clientPort, err := e.ports.reserve()
	if err != nil {
		return err
	}
	peerPort, err := e.ports.reserve()
	if err != nil {
		return err
	}
	e.etcdURL = "http://127.0.0.1:" + strconv.Itoa(clientPort)
	peerURL := "http://127.0.0.1:" + strconv.Itoa(peerPort)
	process := e.process("etcd", storage, program,
		"--name=default",
		"--data-dir="+filepath.Join(e.temp, "etcd"),
		"--listen-client-urls="+e.etcdURL,
		"--advertise-client-urls="+e.etcdURL,
		"--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=default="+peerURL,
		"--unsafe-no-fsync", // the data does not outlive the run
		"--log-level=warn",
	)
	process.ready = probe(http.DefaultClient, e.etcdURL+"/readyz")
	return e.start(ctx, process)
}

// apiServer is one kube-apiserver with its certificate authority and an administrator.
type apiServer struct {
	name   string
	port   int
	folder string // keys and certificates
	ca     *authority
	// admin is the administrator's kubeconfig.
	admin   *clientcmdapi.Config
	process *Process
}

func (a *apiServer) url() string {
	return "https://127.0.0.1:" + strconv.Itoa(a.port)
}

// newAPIServer prepares an API server: its address and credentials are final, and nothing runs yet.
func (e *Env) newAPIServer(name string, logName string) (*apiServer, error) {
	port, err := e.ports.reserve()
	if err != nil {
		return nil, err
	}
	ca, err := newAuthority(name)
	if err != nil {
		return nil, err
	}
	a := &apiServer{name: name, port: port, folder: filepath.Join(e.temp, logName), ca: ca}
	if err := ca.serverFiles(a.folder); err != nil {
		return nil, err
	}
	signingKey, err := newSigningKey()
	if err != nil {
		return nil, err
	}
	if err := writeFiles(a.folder, map[string][]byte{"sa.key": signingKey}); err != nil {
		return nil, err
	}
	certificate, key, err := ca.client("admin", adminGroup)
	if err != nil {
		return nil, err
	}
	a.admin = a.kubeconfig("admin", &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
	a.process = e.process(logName, apiServers, "")
	a.process.ready, err = a.probe("/readyz")
	return a, err
}

// startAPIServer runs the API server with RBAC and TLS; extra are more flags.
func (e *Env) startAPIServer(ctx context.Context, a *apiServer, extra ...string) error {
	program, err := e.tools.program(ctx, apiServerBuild)
	if err != nil {
		return err
	}
	file := func(name string) string { return filepath.Join(a.folder, name) }
	a.process.path = program
	a.process.args = append([]string{
		"--etcd-servers=" + e.etcdURL,
		"--etcd-prefix=/" + a.name,
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
	}, extra...)
	return e.start(ctx, a.process)
}

// startControllers starts kube-controller-manager. It belongs after the CRDs: the garbage collector looks for new kinds only
// every 30 s (cmd/kube-controller-manager/app/core.go).
func (e *Env) startControllers(ctx context.Context) error {
	program, err := e.tools.program(ctx, controllersBuild)
	if err != nil {
		return err
	}
	port, err := e.ports.reserve()
	if err != nil {
		return err
	}
	const user = "system:kube-controller-manager"
	certificate, key, err := e.api.ca.client(user)
	if err != nil {
		return err
	}
	folder := filepath.Join(e.temp, "kube-controller-manager")
	if err := e.api.ca.serverFiles(folder); err != nil {
		return err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, e.api.kubeconfig(user, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})); err != nil {
		return err
	}
	process := e.process("kube-controller-manager", clients, program,
		"--kubeconfig="+kubeconfig,
		"--controllers="+kubernetesControllers,
		"--use-service-account-credentials",
		"--service-account-private-key-file="+filepath.Join(e.api.folder, "sa.key"),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port),
		"--tls-cert-file="+filepath.Join(folder, "tls.crt"),
		"--tls-private-key-file="+filepath.Join(folder, "tls.key"),
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	)
	process.ready = probe(e.api.httpClient(), fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
	return e.start(ctx, process)
}

// httpClient trusts the certificate authority of the API server.
func (a *apiServer) httpClient() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.ca.certificate)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
}

// probe asks the API server itself, as administrator.
func (a *apiServer) probe(path string) (func(context.Context) error, error) {
	config, err := restConfig(a.admin)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of %s: %w", a.name, err)
	}
	return probe(client, a.url()+path), nil
}

// probe returns a check that succeeds when url answers with status 200.
func probe(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, logTail))
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", response.Status, body)
		}
		return nil
	}
}

// start runs a process and remembers it for Stop, also when it fails.
func (e *Env) start(ctx context.Context, p *Process) error {
	ctx, cancel := e.bound(ctx)
	defer cancel()
	e.mu.Lock()
	if e.life.Err() != nil {
		e.mu.Unlock()
		return errors.New("the environment is stopped")
	}
	if !slices.Contains(e.processes, p) {
		e.processes = append(e.processes, p)
	}
	e.mu.Unlock()
	return p.Start(ctx)
}

// process prepares a component: its log is in the artifacts folder.
func (e *Env) process(name string, layer layer, path string, args ...string) *Process {
	return &Process{Name: name, layer: layer, LogPath: filepath.Join(e.dir, name+".log"), path: path, args: args}
}

func writeAuditPolicy(folder string) (string, error) {
	path := filepath.Join(folder, "audit-policy.yaml")
	if err := os.WriteFile(path, []byte(auditPolicy), 0o644); err != nil {
		return "", fmt.Errorf("cannot write the audit policy: %w", err)
	}
	return path, nil
}
