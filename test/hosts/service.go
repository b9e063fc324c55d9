package hosts

import (
	"context"
	"errors"

	"github.com/openshift/assisted-service/models"
)

// Service is what a booted host reaches of assisted-service: the part of its REST API that the discovery agent, the
// installer and the controller in the installed cluster talk to, and the discovery images of the image service beside it.
// The simulator (test/assistedsim) implements it in-process, test/assistedrest over the API of the real service.
type Service interface {
	// Image returns the ignition in the discovery ISO of an InfraEnv, with the token that the URL of the ISO carries.
	// ErrNotFound: there is no such InfraEnv, or the token is no good.
	Image(ctx context.Context, infraEnvID, token string) ([]byte, error)
	// Register announces a host that booted the discovery system of an InfraEnv. A host that registers again keeps its
	// identity. ErrNotFound: there is no such InfraEnv.
	Register(ctx context.Context, agent Agent) error
	// Next blocks until the service has an instruction for the host. ErrNotFound: the host or its InfraEnv is gone, and the
	// discovery agent registers again.
	Next(ctx context.Context, agent Agent) (Instruction, error)
	// Progress reports that a host entered an installation stage.
	Progress(ctx context.Context, report Report) error
	// Finalize tells, as the controller in a cluster does, that everything in it is installed. It returns when the service
	// knows, or has no use for it any more.
	Finalize(ctx context.Context, clusterID string) error
}

// ErrNotFound is returned by a Service for a host, an InfraEnv or a cluster that it does not know (any more).
var ErrNotFound = errors.New("not known to assisted-service")

// AgentConfig is what the ignition of a discovery system tells its agent.
type AgentConfig struct {
	// ServiceURL is where assisted-service is.
	ServiceURL string
	// InfraEnvID is the InfraEnv that the host registers in.
	InfraEnvID string
	// Token proves to the service that the agent belongs to the InfraEnv; empty where the service wants no proof. It is a secret.
	Token string
	// AgentVersion is the image of the agent.
	AgentVersion string
}

// Agent is the discovery agent of a host.
type Agent struct {
	AgentConfig
	// HostID is the UUID of the machine.
	HostID string
	// Inventory is what the machine consists of.
	Inventory *models.Inventory
	// ImageFailure returns why the host cannot pull a container image at the moment; empty: it can. Nil: it always can.
	ImageFailure func(image string) string
}

// CannotPull returns why the host cannot pull a container image at the moment; empty: it can.
func (a Agent) CannotPull(image string) string {
	if a.ImageFailure == nil {
		return ""
	}
	return a.ImageFailure(image)
}

// Report is one step of an installation.
type Report struct {
	AgentConfig
	HostID string
	// ClusterID is set when the controller in the cluster reports for the host: it has credentials of its own.
	ClusterID string
	Stage     models.HostStage
	Info      string
}

// InstructionKind says what a host is to do.
type InstructionKind string

const (
	// Exit makes the discovery agent stop and start again: it registers again (binding and unbinding end that way).
	Exit InstructionKind = "exit"
	// Install starts the installation.
	Install InstructionKind = "install"
	// Stop ends an installation that is under way.
	Stop InstructionKind = "stop"
)

// Instruction is one order of assisted-service to a host.
type Instruction struct {
	Kind InstructionKind
	// Install only. The cluster as namespace/name of its ClusterDeployment.
	ClusterNamespace, ClusterName string
	// ClusterID is the id of the cluster in assisted-service.
	ClusterID string
	// Hostname, Role and Bootstrap are what the service settled on for the host.
	Hostname  string
	Role      models.HostRole
	Bootstrap bool
	// SingleNode is true when the cluster consists of this host alone.
	SingleNode bool
	// DayTwo is true when the host joins a cluster that is already installed.
	DayTwo bool
	// KnownStages are the stages that this release of the service knows; empty: all.
	KnownStages []models.HostStage
	// InstallationDisk is the id (by-id path) of the disk to write to.
	InstallationDisk string
	// NodeLabels are set on the Node once it is Ready: by the controller in the cluster, and by assisted-service itself for a
	// host of day 2.
	NodeLabels map[string]string
	// IgnitionOverrides is the JSON ignition that is merged into the host's pointer ignition.
	IgnitionOverrides string
	// InstallerArgs is a JSON array of arguments for coreos-installer.
	InstallerArgs string
}
