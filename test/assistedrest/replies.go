package assistedrest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openshift/assisted-service/models"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

const (
	// loadBalancer is what the names of every cluster resolve to: no address of a host, which the service would refuse.
	loadBalancer = "192.168.111.5"
	// wildcardProbe is a name that must not resolve: the service detects wildcard records with it.
	wildcardProbe = "validateNoWildcardDNS."
	// workerIgnition is what the machine config server of an installed cluster answers to the service's check.
	workerIgnition = `{"ignition":{"version":"3.2.0"}}`
	// A fast disk and a fast registry.
	syncMilliseconds = 2
	imageBytes       = 300e6
	imageSeconds     = 1.5
	imageRate        = 200
)

// replyTo is the reply of a healthy host to a step. known is false if the host has no reply.
func replyTo(step *models.Step, agent hosts.Agent) (reply models.StepReply, known bool, err error) {
	reply = models.StepReply{StepID: step.StepID, StepType: step.StepType}
	var output any
	switch step.StepType {
	case models.StepTypeInventory:
		output = agent.Inventory
	case models.StepTypeConnectivityCheck:
		output, err = connectivity(step, agent.Inventory)
	case models.StepTypeNtpSynchronizer:
		output = models.NtpSynchronizationResponse{NtpSources: []*models.NtpSource{
			{SourceName: "ntp.laboratory", SourceState: models.SourceStateSynced},
		}}
	case models.StepTypeDomainResolution:
		output, err = resolutions(step)
	case models.StepTypeVerifyVips:
		output, err = freeVIPs(step)
	case models.StepTypeContainerImageAvailability:
		output, reply.Error, err = images(step, agent)
		if reply.Error != "" {
			reply.ExitCode = 1
		}
	case models.StepTypeInstallationDiskSpeedCheck:
		output, err = diskSpeed(step)
	case models.StepTypeAPIVipConnectivityCheck:
		output, err = machineConfigServer(step)
	case models.StepTypeTangConnectivityCheck:
		output = models.TangConnectivityResponse{IsSuccess: true, TangServerResponse: []*models.TangServerResponse{}}
	case models.StepTypeExecute, models.StepTypeLogsGather, models.StepTypeStopInstallation:
		return reply, true, nil
	default:
		return reply, false, nil
	}
	if err != nil {
		return reply, true, fmt.Errorf("cannot answer step %s: %w", step.StepType, err)
	}
	encoded, err := json.Marshal(output)
	if err != nil {
		return reply, true, fmt.Errorf("cannot answer step %s: %w", step.StepType, err)
	}
	reply.Output = string(encoded)
	return reply, true, nil
}

// argument decodes the first argument of a step.
func argument[T any](step *models.Step) (value T, err error) {
	if len(step.Args) == 0 {
		return value, errors.New("it has no arguments")
	}
	return value, json.Unmarshal([]byte(step.Args[0]), &value)
}

// connectivity reaches every address of every other host from the first interface that has an address.
func connectivity(step *models.Step, own *models.Inventory) (*models.ConnectivityReport, error) {
	others, err := argument[models.ConnectivityCheckParams](step)
	if err != nil {
		return nil, err
	}
	nic := &models.Interface{}
	for _, candidate := range own.Interfaces {
		if len(candidate.IPV4Addresses) > 0 {
			nic = candidate
			break
		}
	}
	from := ""
	if len(nic.IPV4Addresses) > 0 {
		from, _, _ = strings.Cut(nic.IPV4Addresses[0], "/")
	}
	report := &models.ConnectivityReport{RemoteHosts: []*models.ConnectivityRemoteHost{}}
	for _, other := range others {
		remote := &models.ConnectivityRemoteHost{HostID: other.HostID}
		for _, target := range other.Nics {
			for _, address := range target.IPAddresses {
				remote.L2Connectivity = append(remote.L2Connectivity, &models.L2Connectivity{
					OutgoingNic: nic.Name, OutgoingIPAddress: from, RemoteIPAddress: address, RemoteMac: target.Mac.String(), Successful: true,
				})
				remote.L3Connectivity = append(remote.L3Connectivity, &models.L3Connectivity{
					OutgoingNic: nic.Name, RemoteIPAddress: address, Successful: true, AverageRTTMs: 0.2,
				})
				remote.MtuReport = append(remote.MtuReport, &models.MtuReport{OutgoingNic: nic.Name, RemoteIPAddress: address, MtuSuccessful: true})
			}
		}
		report.RemoteHosts = append(report.RemoteHosts, remote)
	}
	return report, nil
}

func resolutions(step *models.Step) (*models.DomainResolutionResponse, error) {
	request, err := argument[models.DomainResolutionRequest](step)
	if err != nil {
		return nil, err
	}
	response := &models.DomainResolutionResponse{Resolutions: []*models.DomainResolutionResponseDomain{}}
	for _, domain := range request.Domains {
		resolution := &models.DomainResolutionResponseDomain{DomainName: domain.DomainName, Cnames: []string{}}
		if !strings.HasPrefix(ptr.Deref(domain.DomainName, ""), wildcardProbe) {
			resolution.IPV4Addresses = append(resolution.IPV4Addresses, loadBalancer)
		}
		response.Resolutions = append(response.Resolutions, resolution)
	}
	return response, nil
}

func freeVIPs(step *models.Step) (models.VerifyVipsResponse, error) {
	request, err := argument[models.VerifyVipsRequest](step)
	if err != nil {
		return nil, err
	}
	response := models.VerifyVipsResponse{}
	for _, vip := range request {
		response = append(response, &models.VerifiedVip{
			Vip: vip.Vip, VipType: vip.VipType, Verification: ptr.To(models.VipVerificationSucceeded),
		})
	}
	return response, nil
}

// images pulls each image; failure is why one of them cannot be.
func images(step *models.Step, agent hosts.Agent) (_ *models.ContainerImageAvailabilityResponse, failure string, err error) {
	request, err := argument[models.ContainerImageAvailabilityRequest](step)
	if err != nil {
		return nil, "", err
	}
	response := &models.ContainerImageAvailabilityResponse{Images: []*models.ContainerImageAvailability{}}
	for _, name := range request.Images {
		image := &models.ContainerImageAvailability{
			Name: name, Result: models.ContainerImageAvailabilityResultSuccess, SizeBytes: imageBytes, Time: imageSeconds, DownloadRate: imageRate,
		}
		if problem := agent.CannotPull(name); problem != "" {
			failure = problem
			image = &models.ContainerImageAvailability{Name: name, Result: models.ContainerImageAvailabilityResultFailure}
		}
		response.Images = append(response.Images, image)
	}
	return response, failure, nil
}

func diskSpeed(step *models.Step) (*models.DiskSpeedCheckResponse, error) {
	request, err := argument[models.DiskSpeedCheckRequest](step)
	if err != nil {
		return nil, err
	}
	return &models.DiskSpeedCheckResponse{Path: ptr.Deref(request.Path, ""), IoSyncDuration: syncMilliseconds}, nil
}

func machineConfigServer(step *models.Step) (*models.APIVipConnectivityResponse, error) {
	request, err := argument[models.APIVipConnectivityRequest](step)
	if err != nil {
		return nil, err
	}
	return &models.APIVipConnectivityResponse{IsSuccess: true, URL: ptr.Deref(request.URL, ""), Ignition: workerIgnition}, nil
}
