package hosts

import (
	"context"
	"errors"

	"github.com/openshift/assisted-service/models"
)

// Service is the part of the REST API of assisted-service that hosts use: the discovery agent, the installer and
// the controller in the installed cluster. It includes the discovery images of the image service. The simulator
// (test/assistedsim) implements it in-process, test/assistedrest with the API of the real service.
type Service interface {
	// Image returns the Ignition config in the discovery ISO of an InfraEnv, with the token in the URL of the
	// ISO. ErrNotFound: the InfraEnv does not exist, or the token is invalid.
	Image(ctx context.Context, infraEnvID, token string) ([]byte, error)
	// Register registers a host that booted the discovery system of an InfraEnv. A host that registers again
	// keeps its identity. ErrNotFound: the InfraEnv does not exist.
	Register(ctx context.Context, agent Agent) error
	// Next blocks until the service has an instruction for the host. ErrNotFound: the host or its InfraEnv was
	// deleted, and the discovery agent registers again.
	Next(ctx context.Context, agent Agent) (Instruction, error)
	// Progress reports that a host entered an installation stage.
	Progress(ctx context.Context, report Report) error
	// Finalize reports, as the controller in a cluster does, that the cluster is completely installed. It
	// returns once the service knows, or does not need it any more.
	Finalize(ctx context.Context, clusterID string) error
}

// ErrNotFound is returned by a Service for a host, an InfraEnv or a cluster that it does not know (any more).
var ErrNotFound = errors.New("not known to assisted-service")

// AgentConfig is the configuration of the discovery agent in the Ignition config of its system.
type AgentConfig struct {
	// ServiceURL is the URL of assisted-service.
	ServiceURL string
	// InfraEnvID is the InfraEnv in which the host registers.
	InfraEnvID string
	// Token proves to the service that the agent belongs to the InfraEnv; empty if the service requires no
	// proof. It is a secret.
	Token string
	// AgentVersion is the image of the agent.
	AgentVersion string
}

// Agent is the discovery agent of a host.
type Agent struct {
	AgentConfig
	// HostID is the UUID of the machine.
	HostID string
	// Inventory is the hardware of the machine.
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

// Report is a step of an installation.
type Report struct {
	AgentConfig
	HostID string
	// ClusterID is set when the controller in the cluster reports for the host: it has credentials of its own.
	ClusterID string
	Stage     models.HostStage
	Info      string
}

// InstructionKind is the kind of an instruction to a host.
type InstructionKind string

const (
	// Exit restarts the discovery agent, which registers again (binding and unbinding end that way).
	Exit InstructionKind = "exit"
	// Install starts the installation.
	Install InstructionKind = "install"
	// Stop ends a running installation.
	Stop InstructionKind = "stop"
)

// Instruction is an instruction of assisted-service to a host.
type Instruction struct {
	Kind InstructionKind
	// Install only. The cluster, as namespace/name of its ClusterDeployment.
	ClusterNamespace, ClusterName string
	// ClusterID is the id of the cluster in assisted-service.
	ClusterID string
	// Hostname, Role and Bootstrap are the decisions of the service about the host.
	Hostname  string
	Role      models.HostRole
	Bootstrap bool
	// SingleNode is true if the cluster consists of this host alone.
	SingleNode bool
	// DayTwo is true if the host joins an installed cluster.
	DayTwo bool
	// KnownStages are the stages that this release of the service knows; empty: all.
	KnownStages []models.HostStage
	// InstallationDisk is the id (by-id path) of the disk to write to.
	InstallationDisk string
	// NodeLabels are set on the Node once it is Ready: by the controller in the cluster, and by assisted-service
	// itself for a day-2 host.
	NodeLabels map[string]string
	// IgnitionOverrides is the Ignition config (JSON) that is merged into the host's pointer config.
	IgnitionOverrides string
	// InstallerArgs is a JSON array of arguments for coreos-installer.
	InstallerArgs string
}
