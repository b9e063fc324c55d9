-- Reasons that need an action of the user. Missing objects such as a Secret are not included: a later wave may create them.
local wrong = {
  ArbiterMismatch = true, AssistedServiceNotResponding = true, BootstrapProviderOutdated = true, CertificateRequestMismatch = true, ClusterVersionUnavailable = true, ControlPlaneLabelsMissing = true, EtcdQuorumAtRisk = true,
  DrainRuleNotOurs = true, EtcdTopologyNotSupported = true, EtcdAlarm = true, EtcdHostNotIdentified = true, EtcdUnknown = true, ForeignAgentsBound = true, InfrastructureDeletionStuck = true, InstallationFailed = true, InstallationNotOurs = true, InstallationRejected = true,
  InvalidConfiguration = true, KubeconfigRefused = true, KubeconfigUnauthorized = true, KubeconfigUntrusted = true, KubeconfigNotOurs = true, KubernetesVersionMismatch = true, LastEtcdMember = true, MachineConfigPoolDegraded = true, MachineCreationFailed = true, MachinesWithoutOwner = true, NodeDeletionForbidden = true, NodeWithoutMachine = true, NotHealthy = true,
  PreparationFailed = true, Reregistered = true, RegistryUnavailable = true, ReleasedHostRunning = true, ReleaseImageNotFound = true, TopologySkipsWorkers = true, UnsupportedVersion = true,
  UpgradeConcurrencyTooLow = true, UpgradeFailing = true, UpgradeNotOffered = true, UpgradeRefused = true, UpgradeRiskNotAccepted = true, UserActionRequired = true,
  VersionChangeNotSupported = true, VersionMismatch = true, WaitingForMachineAPI = true, WorkersNotCreated = true,
}
-- Conditions in the order in which they matter. Conditions that are True during an operation are last.
local order = {
  "Deleting", "Installed", "RegistrationHealthy", "ReleaseImageResolved", "MachinesCreated", "Available", "ControlPlaneComponentsHealthy", "EtcdClusterHealthy", "KubeconfigAvailable",
  "MachinesUpToDate", "TopologyUpgradeable", "CertificatesApproved", "RollingOut", "ScalingUp", "HostsReleasing", "ScalingDown", "Remediating",
}
local changes = { "RollingOut", "ScalingUp", "HostsReleasing", "ScalingDown", "Remediating" }

local conditions = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, c in ipairs(obj.status.conditions) do
    conditions[c.type] = c
  end
end

local function is(type, status)
  return conditions[type] ~= nil and conditions[type].status == status
end

local function health(status, type)
  local c = conditions[type]
  if c.message == nil or c.message == "" then
    return { status = status, message = type .. ": " .. c.reason }
  end
  return { status = status, message = c.reason .. ": " .. c.message }
end

if is("Paused", "True") then
  return { status = "Suspended", message = "the Cluster or its control plane is paused: nothing is changed" }
end
for _, type in ipairs(order) do
  if conditions[type] ~= nil and wrong[conditions[type].reason] then
    return health("Degraded", type)
  end
end
if is("Deleting", "True") then
  return health("Progressing", "Deleting")
end
if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "waiting for the deletion to start" }
end
if conditions.Installed == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "waiting for the control plane provider to read the spec" }
end
if not is("Installed", "True") then
  if conditions.Installed.reason == "InstallationOnHold" then
    return health("Suspended", "Installed")
  end
  -- The condition of that step reports what blocks the registration of an installation.
  if conditions.Installed.reason == "WaitingForAssistedService" and is("ReleaseImageResolved", "False") then
    return health("Progressing", "ReleaseImageResolved")
  end
  return health("Progressing", "Installed")
end
if not is("Available", "True") then
  local reason = conditions.Available ~= nil and conditions.Available.reason
  if reason == "WaitingForAPIServer" or reason == "WaitingForHealthyCluster" or reason == "ControlPlaneRestarting" then
    return health("Progressing", "Available")
  end
  return health("Degraded", "Available")
end
for _, type in ipairs(changes) do
  if is(type, "True") then
    return health("Progressing", type)
  end
end
if not is("MachinesCreated", "True") then
  return health("Progressing", "MachinesCreated")
end
return { status = "Healthy", message = "the cluster is installed and its control plane serves" }
