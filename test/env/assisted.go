package env

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/token"
)

const serviceModule = "github.com/openshift/assisted-service"

var (
	serviceBuild = component{
		dir: "assisted-service", module: serviceModule, binary: "assisted-service", pkg: serviceModule + "/cmd",
		// No flag turns off the metrics server on port 8080, which two environments cannot share.
		variables: map[string]string{"sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress": "0"},
	}
	admissionBuild = component{
		dir: "assisted-service", module: serviceModule, binary: "assisted-service-webadmission", pkg: serviceModule + "/cmd/webadmission",
	}
	assistedBuilds = []component{serviceBuild, admissionBuild}
)

// AssistedAuth is how assisted-service protects itself.
type AssistedAuth string

const (
	// AssistedAuthNone lets everybody in.
	AssistedAuthNone AssistedAuth = "none"
	// AssistedAuthLocal wants a token of an InfraEnv or of a cluster, as on every OpenShift hub.
	AssistedAuthLocal AssistedAuth = "local"
)

// AssistedOptions say how assisted-service runs.
type AssistedOptions struct {
	// Auth is how the service protects itself. Default: AssistedAuthNone.
	Auth AssistedAuth
	// BaseURL is what the service tells others to reach it under. Default: its own address.
	BaseURL string
	// ImageServiceURL is where the URLs of images begin. Nothing needs to serve it. Default: an address that nobody has.
	ImageServiceURL string
	// Registries are those (host:port) whose images need no credentials: the service refuses pull secrets without them
	// otherwise.
	Registries []string
	// Env are more variables of the service, in the form name=value. They win over those that are set here.
	Env []string
}

const (
	// assistedName is what the process is called, here and by the API server.
	assistedName = "assisted-service"
	// assistedNamespace is where assisted-service thinks it runs.
	assistedNamespace = "assisted-installer"
	// assistedLease is the one that its controllers run under (cmd/main.go, LeaderElectionID).
	assistedLease = "77190dcb.agent-install.openshift.io"
	// generationTimeout is how long the service may take to make the files of a cluster, which is a matter of milliseconds.
	generationTimeout = 30 * time.Second
)

// AssistedService is a running assisted-service with its database and its admission webhooks.
type AssistedService struct {
	url    string
	folder string // what it keeps, and what it is given
	key    *token.Key

	service, database, admission *Process

	mu sync.Mutex // held while the list of releases is changed
}

// StartAssistedService builds assisted-service if need be, starts it on the management cluster, with its own PostgreSQL and
// its admission webhooks, and returns when its controllers run. Everything ends with the environment, which has one
// assisted-service at most.
//
// It is the real service, but for what no laboratory has: instead of running openshift-install it makes placeholders of a
// cluster's files (see PutKubeconfig), release images are known from SetRelease, and static networks are refused. Its own
// intervals are shorter than a user's.
//
// It needs Linux, PostgreSQL (see Build), and the right to make private mounts: root or user namespaces. The service looks
// for two files at paths of its container image, which only its process finds there.
func (e *Env) StartAssistedService(ctx context.Context, options AssistedOptions) (*AssistedService, error) {
	ctx, cancel := e.bound(ctx)
	defer cancel()
	if slices.ContainsFunc(e.Processes(), func(p *Process) bool { return p.Name == assistedName }) {
		return nil, errors.New("this environment has its assisted-service already")
	}
	begin := time.Now()
	if err := e.tools.buildAll(ctx, assistedBuilds); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(e.temp, "assisted-service-")
	if err != nil {
		return nil, fmt.Errorf("cannot create a folder for assisted-service: %w", err)
	}
	key, err := token.NewKey()
	if err != nil {
		return nil, err
	}
	a := &AssistedService{folder: folder, key: key}
	if options.Auth != AssistedAuthLocal {
		a.key = nil
	}
	var socket string
	if a.database, socket, err = e.startPostgres(ctx); err != nil {
		return nil, err
	}
	if err := a.newService(ctx, e, options, socket); err != nil {
		return nil, err
	}
	if err := e.start(ctx, a.service); err != nil {
		return nil, err
	}
	if err := a.startAdmission(ctx, e); err != nil {
		return nil, err
	}
	e.tools.sayf("assisted-service is up after %s (authentication: %s)", time.Since(begin).Round(100*time.Millisecond), cmp.Or(options.Auth, AssistedAuthNone))
	return a, nil
}

// newService prepares the process of the service.
func (a *AssistedService) newService(ctx context.Context, e *Env, options AssistedOptions, socket string) error {
	program, err := e.tools.program(ctx, serviceBuild)
	if err != nil {
		return err
	}
	port, err := e.ports.reserve()
	if err != nil {
		return err
	}
	a.url = "http://127.0.0.1:" + strconv.Itoa(port)
	kubeconfig, err := e.clientFile(assistedName, a.folder)
	if err != nil {
		return err
	}
	if err := a.writeSurroundings(e.api.ca.pem); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: assistedNamespace}}
	if err := client.IgnoreAlreadyExists(e.client.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("cannot create the namespace of assisted-service: %w", err)
	}
	variables, err := a.variables(options, kubeconfig, socket)
	if err != nil {
		return err
	}
	a.service = e.process(assistedName, clients, "/bin/sh", a.file("start.sh"), a.folder, program, "--port="+strconv.Itoa(port))
	a.service.User = assistedName
	a.service.env = slices.Concat(variables, options.Env)
	a.service.attributes = ownMounts
	a.service.before = func(ctx context.Context) error {
		// What an ended service leaves keeps the next one waiting for 15 s.
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: assistedNamespace, Name: assistedLease}}
		return client.IgnoreNotFound(e.client.Delete(ctx, lease))
	}
	serves := probe(http.DefaultClient, a.url+"/ready")
	a.service.ready = func(ctx context.Context) error {
		if err := serves(ctx); err != nil {
			return err
		}
		return e.client.Get(ctx, client.ObjectKey{Namespace: assistedNamespace, Name: assistedLease}, &coordinationv1.Lease{})
	}
	return nil
}

// clientFile writes the kubeconfig of an administrator of that name, and returns its path.
func (e *Env) clientFile(user, folder string) (string, error) {
	certificate, key, err := e.api.ca.client(user, adminGroup)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, user+".kubeconfig")
	return path, writeKubeconfig(path, e.api.kubeconfig(user, &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}))
}

func (a *AssistedService) file(elements ...string) string {
	return filepath.Join(append([]string{a.folder}, elements...)...)
}

// URL is where the service itself answers.
func (a *AssistedService) URL() string {
	return a.url
}

// Process is the service. Stopped or killed, it may be started again: it serves under the same address and knows what it
// knew.
func (a *AssistedService) Process() *Process {
	return a.service
}

// Database is the PostgreSQL of the service. Stopped or killed, it may be started again, with its old data.
func (a *AssistedService) Database() *Process {
	return a.database
}

// Admission serves the admission webhooks.
func (a *AssistedService) Admission() *Process {
	return a.admission
}

// ClusterToken returns a token with which the controller in a cluster talks to the service; empty when none is wanted. The
// id is that of the service, which is spec.clusterMetadata.infraID of the AgentClusterInstall.
func (a *AssistedService) ClusterToken(clusterID string) (string, error) {
	if a.key == nil {
		return "", nil
	}
	return a.key.Sign(token.Cluster, clusterID)
}

// SetRelease tells the service which version a release image has, before anything refers to the image: it asks a registry
// through the oc program, which is not here.
func (a *AssistedService) SetRelease(image, version string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, err := os.ReadFile(a.file("releases"))
	if err != nil {
		return fmt.Errorf("cannot read the release images of assisted-service: %w", err)
	}
	line := image + " " + strings.TrimPrefix(version, "v") + "\n"
	if bytes.Contains(known, []byte(line)) {
		return nil
	}
	return replaceFile(a.file("releases"), append(known, line...))
}

// PutKubeconfig replaces the placeholder that the service made as the kubeconfig of a cluster, so that the Secret
// <ClusterDeployment>-admin-kubeconfig, and what the service itself does in the cluster, are about a real one. The kubeconfig
// must name the certificate authority of its server: the service adds that of the ingress.
//
// The service makes the file anew each time that it prepares the installation, and reads it when the cluster is installing.
// So this must be called for each preparation, before all hosts have answered what they are asked then (that they have the
// container images). since is when the preparation began: the status_updated_at of the cluster, which is in state
// preparing-for-installation. PutKubeconfig waits until the file of this preparation is there.
func (a *AssistedService) PutKubeconfig(ctx context.Context, clusterID string, since time.Time, kubeconfig []byte) error {
	// It is written after the kubeconfig (internal/ignition/installmanifests.go, fileNames). Times of files are coarse.
	last, since := a.file("data", clusterID, "install-config.yaml"), since.Add(-100*time.Millisecond)
	err := wait.PollUntilContextTimeout(ctx, settleInterval, generationTimeout, true, func(context.Context) (bool, error) {
		info, err := os.Stat(last)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return err == nil && !info.ModTime().Before(since), err
	})
	if err != nil {
		return fmt.Errorf("assisted-service makes no kubeconfig for cluster %s: %w", clusterID, err)
	}
	return replaceFile(a.file("data", clusterID, "kubeconfig-noingress"), kubeconfig)
}

// replaceFile writes a file in one step: whoever reads it finds the old or the new content.
func replaceFile(path string, content []byte) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("cannot replace %s: %w", path, err)
	}
	return nil
}
