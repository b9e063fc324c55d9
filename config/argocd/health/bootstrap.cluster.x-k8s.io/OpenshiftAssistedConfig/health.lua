-- Reasons that need an action of the user. Missing objects such as a Secret are not included: a later wave may create them.
local wrong = {
  AssistedServiceNotResponding = true, BMCOfAnotherServer = true, BootImageOutdated = true, BootImageRejected = true, ClusterDeploymentNotOurs = true, ClusterReregistered = true, RoleConflict = true, DiscoveryImageFailed = true,
  DiscoveryImageUnavailable = true, FencingCredentialsUnusable = true, HostBelowRequirements = true, HostBootedDiscoveryAgain = true, HostInAnotherCluster = true, HostRestoredWithoutHistory = true,
  HostInstallationFailed = true, HostNotResponding = true, HostRefused = true, HostUnmanaged = true, IgnitionDownloadFailed = true, InfraEnvNotOurs = true, InstallationDiskNotFound = true,
  InvalidConfiguration = true, MachinePoolNotSupported = true, NodeNameTaken = true, ServerInUse = true,
}

local conditions = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, c in ipairs(obj.status.conditions) do
    conditions[c.type] = c
  end
end

local function health(status, c)
  if c.message == nil or c.message == "" then
    return { status = status, message = c.reason }
  end
  return { status = status, message = c.reason .. ": " .. c.message }
end

if conditions.Paused ~= nil and conditions.Paused.status == "True" then
  return { status = "Suspended", message = "the Cluster or the object is paused: nothing is changed" }
end
-- Ready has the reason of the deletion, or of the first step that is not completed.
local ready = conditions.Ready
if ready ~= nil and wrong[ready.reason] then
  return health("Degraded", ready)
end
if obj.metadata.deletionTimestamp ~= nil then
  if conditions.Deleting ~= nil and conditions.Deleting.status == "True" then
    return health("Progressing", conditions.Deleting)
  end
  return { status = "Progressing", message = "waiting for the deletion to start" }
end
if ready == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "waiting for the bootstrap provider to read the spec" }
end
if ready.status == "True" then
  return { status = "Healthy", message = "the host is installed" }
end
return health("Progressing", ready)
