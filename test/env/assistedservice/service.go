// Package assistedservice starts the real assisted-service on a management cluster, with its own PostgreSQL and its admission
// webhooks, for whoever wants no simulator of it.
//
// It is the real service, but for what no laboratory has: instead of running openshift-install it makes placeholders of a
// cluster's files (see [Service.PutKubeconfig]), release images are known from [Service.SetRelease], and static networks are
// refused. Its own intervals are shorter than a user's.
//
// It needs Linux, PostgreSQL, and the right to make private mounts: root or user namespaces. The service looks for two files
// at paths of its container image, which only its process finds there.
package assistedservice

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/token"
)

// Auth is how assisted-service protects itself.
type Auth string

const (
	// AuthNone lets everybody in.
	AuthNone Auth = "none"
	// AuthLocal wants a token of an InfraEnv or of a cluster, as on every OpenShift hub.
	AuthLocal Auth = "local"
)

// Options say how assisted-service runs.
type Options struct {
	// Auth is how the service protects itself. Default: AuthNone.
	Auth Auth
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
	// serviceName is what the process is called, here and by the API server.
	serviceName = "assisted-service"
	// namespaceName is where assisted-service thinks it runs.
	namespaceName = "assisted-installer"
	// leaseName is the one that its controllers run under (cmd/main.go, LeaderElectionID).
	leaseName = "77190dcb.agent-install.openshift.io"
	// generationTimeout is how long the service may take to make the files of a cluster, which is a matter of milliseconds.
	generationTimeout = 30 * time.Second
	// pollInterval is the interval at which what has no events is looked at.
	pollInterval = 50 * time.Millisecond
)

// Service is a running assisted-service with its database and its admission webhooks.
type Service struct {
	url    string
	folder string // what it keeps, and what it is given
	key    *token.Key

	service, database, admission *process.Process

	mu sync.Mutex // held while the list of releases is changed
}

// Start builds assisted-service if need be, starts it, and returns when its controllers run. Everything ends with the
// environment, which has one assisted-service at most.
func Start(ctx context.Context, e *env.Env, options Options) (*Service, error) {
	ctx, cancel := e.Group().Bound(ctx)
	defer cancel()
	if slices.ContainsFunc(e.Group().Processes(), func(p *process.Process) bool { return p.Name == serviceName }) {
		return nil, errors.New("this environment has its assisted-service already")
	}
	begin := time.Now()
	if err := e.Components().Build(ctx, components.AssistedService, components.AssistedAdmission); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(e.Group().Temp(), "assisted-service-")
	if err != nil {
		return nil, fmt.Errorf("cannot create a folder for assisted-service: %w", err)
	}
	key, err := token.NewKey()
	if err != nil {
		return nil, err
	}
	s := &Service{folder: folder, key: key}
	if options.Auth != AuthLocal {
		s.key = nil
	}
	var socket string
	if s.database, socket, err = startPostgres(ctx, e.Group()); err != nil {
		return nil, err
	}
	if err := s.newService(ctx, e, options, socket); err != nil {
		return nil, err
	}
	if err := e.Group().Start(ctx, s.service); err != nil {
		return nil, err
	}
	if err := s.startAdmission(ctx, e); err != nil {
		return nil, err
	}
	e.Group().Sayf("assisted-service is up after %s (authentication: %s)", time.Since(begin).Round(100*time.Millisecond),
		cmp.Or(options.Auth, AuthNone))
	return s, nil
}

// newService prepares the process of the service.
func (s *Service) newService(ctx context.Context, e *env.Env, options Options, socket string) error {
	program, err := e.Components().Program(ctx, components.AssistedService)
	if err != nil {
		return err
	}
	port, err := e.Group().Port()
	if err != nil {
		return err
	}
	s.url = "http://127.0.0.1:" + strconv.Itoa(port)
	kubeconfig, err := e.AdminKubeconfig(serviceName, s.folder)
	if err != nil {
		return err
	}
	if err := s.writeSurroundings(e.Authority().PEM()); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName}}
	if err := client.IgnoreAlreadyExists(e.Client().Create(ctx, namespace)); err != nil {
		return fmt.Errorf("cannot create the namespace of assisted-service: %w", err)
	}
	variables, err := s.variables(options, kubeconfig, socket)
	if err != nil {
		return err
	}
	s.service = e.Group().New(serviceName, process.Clients, "/bin/sh", s.file("start.sh"), s.folder, program, "--port="+strconv.Itoa(port))
	s.service.User = serviceName
	s.service.Env = slices.Concat(variables, options.Env)
	s.service.Attributes = ownMounts
	s.service.Before = func(ctx context.Context) error {
		// What an ended service leaves keeps the next one waiting for 15 s.
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceName, Name: leaseName}}
		return client.IgnoreNotFound(e.Client().Delete(ctx, lease))
	}
	serves := process.Probe(http.DefaultClient, s.url+"/ready")
	s.service.Ready = func(ctx context.Context) error {
		if err := serves(ctx); err != nil {
			return err
		}
		return e.Client().Get(ctx, client.ObjectKey{Namespace: namespaceName, Name: leaseName}, &coordinationv1.Lease{})
	}
	return nil
}

func (s *Service) file(elements ...string) string {
	return filepath.Join(append([]string{s.folder}, elements...)...)
}

// URL is where the service itself answers.
func (s *Service) URL() string {
	return s.url
}

// Process is the service. Stopped or killed, it may be started again: it serves under the same address and knows what it
// knew.
func (s *Service) Process() *process.Process {
	return s.service
}

// Database is the PostgreSQL of the service. Stopped or killed, it may be started again, with its old data.
func (s *Service) Database() *process.Process {
	return s.database
}

// Admission serves the admission webhooks.
func (s *Service) Admission() *process.Process {
	return s.admission
}

// ClusterToken returns a token with which the controller in a cluster talks to the service; empty when none is wanted. The
// id is that of the service, which is spec.clusterMetadata.infraID of the AgentClusterInstall.
func (s *Service) ClusterToken(clusterID string) (string, error) {
	if s.key == nil {
		return "", nil
	}
	return s.key.Sign(token.Cluster, clusterID)
}

// SetRelease tells the service which version a release image has, and for which architecture it is (as its tag spells
// it, multi for all), before anything refers to the image: it asks a registry through the oc and skopeo programs, which
// are not here.
func (s *Service) SetRelease(image, version, architecture string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, err := os.ReadFile(s.file("releases"))
	if err != nil {
		return fmt.Errorf("cannot read the release images of assisted-service: %w", err)
	}
	line := strings.Join([]string{image, strings.TrimPrefix(version, "v"), architecture}, " ") + "\n"
	if bytes.Contains(known, []byte(line)) {
		return nil
	}
	return replaceFile(s.file("releases"), append(known, line...))
}

// PutKubeconfig replaces the placeholder that the service made as the kubeconfig of a cluster, so that the Secret
// <ClusterDeployment>-admin-kubeconfig, and what the service itself does in the cluster, are about a real one. The kubeconfig
// must name the certificate authority of its server: the service adds that of the ingress.
//
// The service makes the file again each time that it prepares the installation, and reads it when the cluster is installing.
// So this must be called for each preparation, before all hosts have answered what they are asked then (that they have the
// container images). since is when the preparation began: the status_updated_at of the cluster, which is in state
// preparing-for-installation. PutKubeconfig waits until the file of this preparation is there.
func (s *Service) PutKubeconfig(ctx context.Context, clusterID string, since time.Time, kubeconfig []byte) error {
	// It is written after the kubeconfig (internal/ignition/installmanifests.go, fileNames). Times of files are coarse.
	last, since := s.file("data", clusterID, "install-config.yaml"), since.Add(-100*time.Millisecond)
	err := wait.PollUntilContextTimeout(ctx, pollInterval, generationTimeout, true, func(context.Context) (bool, error) {
		info, err := os.Stat(last)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return err == nil && !info.ModTime().Before(since), err
	})
	if err != nil {
		return fmt.Errorf("assisted-service makes no kubeconfig for cluster %s: %w", clusterID, err)
	}
	return replaceFile(s.file("data", clusterID, "kubeconfig-noingress"), kubeconfig)
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
