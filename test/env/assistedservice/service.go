// Package assistedservice starts the real assisted-service on a management cluster, with its own PostgreSQL and
// its admission webhooks.
//
// It replaces only what a test machine cannot provide. Instead of running openshift-install it generates
// placeholders of a cluster's files (see [Service.PutKubeconfig]). [Service.SetRelease] provides release
// images, and static networks are rejected. Its intervals are shorter than in production.
//
// It needs Linux, PostgreSQL, and the right to create private mounts: root or user namespaces. The service
// reads two files at paths of its container image, which only its process sees.
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

// Auth is the authentication of assisted-service.
type Auth string

const (
	// AuthNone accepts all clients.
	AuthNone Auth = "none"
	// AuthLocal requires a token of an InfraEnv or of a cluster, as on every OpenShift hub.
	AuthLocal Auth = "local"
)

// Options configure assisted-service.
type Options struct {
	// Auth is the authentication of the service. Default: AuthNone.
	Auth Auth
	// BaseURL is the URL of the service for its clients. Default: its own address.
	BaseURL string
	// ImageServiceURL is the base of image URLs, which need not exist. Default: an address without server.
	ImageServiceURL string
	// Registries are the registries (host:port) whose images need no credentials. The service rejects pull
	// secrets without credentials of other registries.
	Registries []string
	// Env are additional variables of the service, in the form name=value. They override those of this package.
	Env []string
}

const (
	// serviceName is the name of the process and of its client of the API server.
	serviceName = "assisted-service"
	// namespaceName is the namespace of assisted-service.
	namespaceName = "assisted-installer"
	// leaseName is the lease of its controllers (cmd/main.go, LeaderElectionID).
	leaseName = "77190dcb.agent-install.openshift.io"
	// generationTimeout is the timeout for generating the files of a cluster, which takes milliseconds.
	generationTimeout = 30 * time.Second
	// pollInterval is the interval of polls.
	pollInterval = 50 * time.Millisecond
)

// Service is a running assisted-service with its database and its admission webhooks.
type Service struct {
	url    string
	folder string // data and inputs of the service
	key    *token.Key

	service, database, admission *process.Process

	mu sync.Mutex // held while the list of releases is changed
}

// Start builds assisted-service if needed, starts it, and returns when its controllers run. It ends with the
// environment. An environment has at most one assisted-service.
func Start(ctx context.Context, e *env.Env, options Options) (*Service, error) {
	ctx, cancel := e.Group().Bound(ctx)
	defer cancel()
	if slices.ContainsFunc(e.Group().Processes(), func(p *process.Process) bool { return p.Name == serviceName }) {
		return nil, errors.New("this environment already has an assisted-service")
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
	// The service ends when it loses its lease on a busy machine, and when one of its controllers panics
	// (controller-runtime v0.16).
	s.service.Restart = true
	s.service.Before = func(ctx context.Context) error {
		// Leftovers of an ended service would block the next one for 15 s.
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

// URL returns the URL of the service.
func (s *Service) URL() string {
	return s.url
}

// Process returns the process of the service. It may be stopped or killed and started again: it keeps its
// address and its data.
func (s *Service) Process() *process.Process {
	return s.service
}

// Database returns the PostgreSQL of the service. It may be stopped or killed and started again with its data.
func (s *Service) Database() *process.Process {
	return s.database
}

// Admission returns the server of the admission webhooks.
func (s *Service) Admission() *process.Process {
	return s.admission
}

// ClusterToken returns the token of the controller in a cluster; empty with AuthNone. The ID is that of the
// service: spec.clusterMetadata.infraID of the AgentClusterInstall.
func (s *Service) ClusterToken(clusterID string) (string, error) {
	if s.key == nil {
		return "", nil
	}
	return s.key.Sign(token.Cluster, clusterID)
}

// SetRelease sets the version and the architecture (in the notation of tags; multi for all) of a release image.
// It must be called before any object refers to the image. The real service queries a registry with the oc and
// skopeo programs, which this package replaces.
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

// PutKubeconfig replaces the placeholder kubeconfig that the service generated for a cluster. Then the Secret
// <ClusterDeployment>-admin-kubeconfig and the service's own client use a real API server. The kubeconfig must
// contain the CA of its server: the service adds the CA of the ingress.
//
// The service generates the file for each preparation of the installation, and reads it when the installation
// starts. So PutKubeconfig must be called for each preparation, before all hosts have reported that they have
// the container images. since is the start of the preparation: the status_updated_at of the cluster in state
// preparing-for-installation. PutKubeconfig waits until the file of this preparation exists.
func (s *Service) PutKubeconfig(ctx context.Context, clusterID string, since time.Time, kubeconfig []byte) error {
	// The service writes this file after the kubeconfig (internal/ignition/installmanifests.go, fileNames).
	// File times are coarse.
	last, since := s.file("data", clusterID, "install-config.yaml"), since.Add(-100*time.Millisecond)
	err := wait.PollUntilContextTimeout(ctx, pollInterval, generationTimeout, true, func(context.Context) (bool, error) {
		info, err := os.Stat(last)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return err == nil && !info.ModTime().Before(since), err
	})
	if err != nil {
		return fmt.Errorf("assisted-service generated no kubeconfig for cluster %s: %w", clusterID, err)
	}
	return replaceFile(s.file("data", clusterID, "kubeconfig-noingress"), kubeconfig)
}

// replaceFile writes a file atomically: readers get the old or the new content.
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
