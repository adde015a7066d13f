-- Karmada takes every object with its label for its own, whichever Karmada has put it there. What a FleetWorkload ships is not written
-- over an object that is neither of the same FleetWorkload nor of the same binding, unless Karmada is to overwrite what it finds. Karmada
-- has merged the labels of the two by now: what the manifest lacks it has from the object, and what it has is its own.
local function labelsOf(o)
  local metadata = object(o) and o.metadata
  local labels = object(metadata) and metadata.labels
  if object(labels) then
    return labels
  end
  return {}
end

local function keepApart(desiredObj, observedObj)
  local want, have = labelsOf(desiredObj), labelsOf(observedObj)
  local metadata = object(desiredObj) and desiredObj.metadata
  local annotations = object(metadata) and metadata.annotations
  if object(annotations) and annotations["@resolution@"] == "overwrite" then
    return
  end
  if want["@uid@"] == nil or want["@uid@"] == have["@uid@"] or have["@managed@"] ~= "true" then
    return
  end
  local binding = "clusterresourcebinding.karmada.io/permanent-id"
  if metadata.namespace ~= nil then
    binding = "resourcebinding.karmada.io/permanent-id"
  end
  if want[binding] ~= nil and want[binding] ~= "" and want[binding] == have[binding] then
    return
  end
  error("@another@", 0)
end
