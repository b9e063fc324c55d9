// Package assistedrest lets the hosts of a [hosts.Rack] install with the real assisted-service. It sends the requests
// of the discovery agent, the installer, the image service and the controller in an installed cluster. It answers the
// instructions of the service like a healthy machine.
package assistedrest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

const (
	defaultPollInterval = 150 * time.Millisecond
	// requestTimeout bounds one call; the service works through some of them for seconds when it is busy.
	requestTimeout = time.Minute
	// refresh is how often an answer that has not changed is sent again.
	refresh = 3 * time.Second
)

// Options of a [Service].
type Options struct {
	// URL is where assisted-service is reached by the image service and by the controllers in the clusters. Discovery agents
	// take the URL in their ignition. Required.
	URL string
	// CAs sign the certificate of the service; nil: those of the system.
	CAs *x509.CertPool
	// Hub reads AgentClusterInstalls. The service does not return the ClusterDeployment of a cluster. Required.
	Hub client.Reader
	// ClusterToken returns the token of the controller in a cluster. Nil, or an empty token: the service wants none.
	ClusterToken func(clusterID string) (string, error)
	// Preparing, if set, is called each time the files of a cluster were generated, including its kubeconfig, and
	// before the installation starts. No host of the cluster completes its preparation before the call has returned
	// without an error.
	Preparing func(ctx context.Context, preparation Preparation) error
	// PollInterval is the interval at which a host polls for instructions; the interval of the service is ignored.
	// Default: 150 ms.
	PollInterval time.Duration
	// Log receives unknown instructions. The zero value discards them.
	Log logr.Logger
}

// Preparation is one attempt of the service to prepare the installation of a cluster.
type Preparation struct {
	// Deployment is the ClusterDeployment of the cluster.
	Deployment types.NamespacedName
	// ClusterID is the id of the cluster in assisted-service.
	ClusterID string
	// Since is when the attempt began.
	Since time.Time
}

// Service is the REST API of a real assisted-service.
type Service struct {
	options Options
	http    *http.Client

	mu sync.Mutex
	// answers are the last answers of each host since it registered, by step.
	answers map[string]map[models.StepType]answer
	// deployments are the ClusterDeployments by the id of their cluster.
	deployments map[string]types.NamespacedName
	unknown     map[models.StepType]bool

	// preparing is held during the hook; prepared is the last preparation of each cluster for which it was called.
	preparing sync.Mutex
	prepared  map[string]time.Time
}

type answer struct {
	output string
	sent   time.Time
}

var _ hosts.Service = (*Service)(nil)

// New returns a client of the service. It sends no request.
func New(options Options) *Service {
	if options.PollInterval == 0 {
		options.PollInterval = defaultPollInterval
	}
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	return &Service{
		options: options,
		http: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: options.CAs, MinVersion: tls.VersionTLS12},
			MaxIdleConnsPerHost: 64,
			IdleConnTimeout:     time.Minute,
		}},
		answers:     map[string]map[models.StepType]answer{},
		deployments: map[string]types.NamespacedName{},
		unknown:     map[models.StepType]bool{},
		prepared:    map[string]time.Time{},
	}
}

// Image implements [hosts.Service] in the place of the image service, which embeds the same ignition.
func (s *Service) Image(ctx context.Context, infraEnvID, token string) ([]byte, error) {
	raw, err := s.get(ctx, endpoint{s.options.URL, token}, "/v2/infra-envs/"+infraEnvID+"/downloads/files?file_name=discovery.ign")
	if err != nil {
		return nil, fmt.Errorf("cannot download the discovery ignition: %w", err)
	}
	return raw, nil
}

// Register implements [hosts.Service].
func (s *Service) Register(ctx context.Context, agent hosts.Agent) error {
	body := map[string]string{"host_id": agent.HostID, "discovery_agent_version": agent.AgentVersion}
	if _, err := s.send(ctx, http.MethodPost, s.agentEndpoint(agent.AgentConfig), "/v2/infra-envs/"+agent.InfraEnvID+"/hosts",
		body); err != nil {
		return fmt.Errorf("cannot register: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[agent.HostID] = map[models.StepType]answer{}
	return nil
}

// Progress implements [hosts.Service].
func (s *Service) Progress(ctx context.Context, report hosts.Report) error {
	to := s.agentEndpoint(report.AgentConfig)
	if report.ClusterID != "" {
		var err error
		if to, err = s.clusterEndpoint(report.ClusterID); err != nil {
			return err
		}
	}
	body := models.HostProgress{CurrentStage: report.Stage, ProgressInfo: report.Info}
	if _, err := s.send(ctx, http.MethodPut, to, hostPath(report.InfraEnvID, report.HostID)+"/progress", body); err != nil {
		return fmt.Errorf("cannot report stage %q: %w", report.Stage, err)
	}
	return nil
}

// Finalize implements [hosts.Service].
func (s *Service) Finalize(ctx context.Context, clusterID string) error {
	to, err := s.clusterEndpoint(clusterID)
	if err != nil {
		return err
	}
	for {
		cluster, err := s.cluster(ctx, to, clusterID)
		if err != nil {
			return err
		}
		switch status := ptr.Deref(cluster.Status, ""); status {
		case models.ClusterStatusFinalizing:
			return s.complete(ctx, to, cluster)
		case models.ClusterStatusInstalled, models.ClusterStatusAddingHosts, models.ClusterStatusError, models.ClusterStatusCancelled:
			return nil
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
}

// complete reports what the controller in the cluster finds there in the end.
func (s *Service) complete(ctx context.Context, to endpoint, cluster *models.Cluster) error {
	path := "/v2/clusters/" + cluster.ID.String()
	certificate, err := ingressCertificate(cluster)
	if err != nil {
		return err
	}
	type call struct {
		method, path string
		body         any
	}
	stage := func(name models.FinalizingStage) call {
		return call{http.MethodPut, "/progress", models.ClusterFinalizingProgress{FinalizingStage: name}}
	}
	calls := []call{stage(models.FinalizingStageWaitingForClusterOperators)}
	for _, operator := range cluster.MonitoredOperators {
		calls = append(calls, call{http.MethodPut, "/monitored-operators", models.OperatorMonitorReport{
			Name: operator.Name, Status: models.OperatorStatusAvailable, StatusInfo: "available", Version: cluster.OpenshiftVersion,
		}})
	}
	calls = append(calls,
		stage(models.FinalizingStageAddingRouterCa),
		call{http.MethodPost, "/uploads/ingress-cert", certificate},
		call{http.MethodPost, "/actions/complete-installation", models.CompletionParams{IsSuccess: ptr.To(true)}},
	)
	for _, c := range calls {
		if _, err := s.send(ctx, c.method, to, path+c.path, c.body); err != nil {
			return fmt.Errorf("cannot finish the installation of cluster %s: %w", cluster.ID, err)
		}
	}
	return nil
}

// wait pauses until the next poll.
func (s *Service) wait(ctx context.Context) error {
	timer := time.NewTimer(s.options.PollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
