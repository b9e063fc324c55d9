package hosts

import (
	"context"
	"errors"

	"github.com/openshift/assisted-service/models"
)

// Service is what a booted host reaches of assisted-service: the part of its REST API that the discovery agent and the
// installer on the host talk to. The simulator (test/assistedsim) implements it in-process.
type Service interface {
	// Register announces a host that booted the discovery image of the InfraEnv with this id and hands over its inventory.
	// A host that registers again keeps its identity. ErrNotFound: there is no such InfraEnv.
	Register(ctx context.Context, infraEnvID, hostID string, inventory *models.Inventory) error
	// Next blocks until the service has an instruction for the host. ErrNotFound: the host or its InfraEnv is gone, and the
	// discovery agent registers again.
	Next(ctx context.Context, infraEnvID, hostID string) (Instruction, error)
	// Progress reports that the host entered an installation stage.
	Progress(ctx context.Context, infraEnvID, hostID string, stage models.HostStage, info string) error
}

// ErrNotFound is returned by a Service for a host or an InfraEnv that it does not know (any more).
var ErrNotFound = errors.New("not known to assisted-service")

// InstructionKind says what a host is to do.
type InstructionKind string

const (
	// Exit makes the discovery agent stop and start again: it registers anew (binding and unbinding end that way).
	Exit InstructionKind = "exit"
	// Install starts the installation.
	Install InstructionKind = "install"
)

// Instruction is one order of assisted-service to a host.
type Instruction struct {
	Kind InstructionKind
	// Install only. The cluster as namespace/name of its ClusterDeployment.
	ClusterNamespace, ClusterName string
	// Hostname, Role and Bootstrap are what the service settled on for the host.
	Hostname  string
	Role      models.HostRole
	Bootstrap bool
	// SingleNode is true when the cluster consists of this host alone.
	SingleNode bool
	// DayTwo is true when the host joins a cluster that is already installed.
	DayTwo bool
	// InstallationDisk is the id (by-id path) of the disk to write to.
	InstallationDisk string
	// NodeLabels are set on the Node by the service's controller once the Node is Ready.
	NodeLabels map[string]string
	// IgnitionOverrides is the JSON ignition that is merged into the host's pointer ignition.
	IgnitionOverrides string
	// InstallerArgs is a JSON array of arguments for coreos-installer.
	InstallerArgs string
}
