---------- retention ----------
local function malformed()
  error("malformed", 0)
end

-- An empty table may be an empty list or an empty object: Lua cannot tell.
local function object(v)
  return type(v) == "table" and v[1] == nil
end

local function list(v)
  return type(v) == "table" and (v[1] ~= nil or next(v) == nil)
end

local function whole(v, least, most)
  if type(v) ~= "number" or v ~= math.floor(v) or v < least or v > most then
    malformed()
  end
  return v + 0
end

-- A number from 2^53 on is too large: Lua would take it for its neighbour.
local function convert(v, want)
  if v == nil then
    return nil
  elseif want == "count" and list(v) then
    return #v
  elseif want == "int" or want == "count" then
    return whole(v, 0, 2147483647)
  elseif want == "long" then
    return whole(v, 0, 9007199254740991)
  elseif want == "partition" and type(v) ~= "string" then
    return whole(v, -2147483647, 2147483647)
  elseif want == "object" then
    if not object(v) then
      malformed()
    end
    return next(v) ~= nil or nil
  elseif want == "bool" then
    if type(v) ~= "boolean" then
      malformed()
    end
  elseif type(v) ~= "string" or (want == "partition" and v == "") then
    malformed()
  end
  return v
end

-- A step of a path is a key, or chooses the element of a list whose key "by" is "is".
local function lookup(at, path)
  for _, step in ipairs(path) do
    if at == nil then
      return nil
    elseif type(step) == "table" then
      if not list(at) then
        malformed()
      end
      local found = nil
      for _, element in ipairs(at) do
        if not object(element) then
          malformed()
        end
        if found == nil and element[step.by] == step.is then
          found = element
        end
      end
      at = found
    else
      if not object(at) then
        malformed()
      end
      at = at[step]
    end
  end
  return at
end

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
  if object(annotations) and annotations["work.karmada.io/conflict-resolution"] == "overwrite" then
    return
  end
  if want["fleetworkload.io/uid"] == nil or want["fleetworkload.io/uid"] == have["fleetworkload.io/uid"] or have["karmada.io/managed"] ~= "true" then
    return
  end
  local binding = "clusterresourcebinding.karmada.io/permanent-id"
  if metadata.namespace ~= nil then
    binding = "resourcebinding.karmada.io/permanent-id"
  end
  if want[binding] ~= nil and want[binding] ~= "" and want[binding] == have[binding] then
    return
  end
  error("fleetworkload: another Karmada has put the object there, so that this Karmada will not manage this resource", 0)
end

local replicasPath = {"spec", "replicas"}

-- A manifest that only probes is never written: how many replicas the member object is to run is told as the reason. What
-- Karmada's own interpreter keeps of a Deployment is kept of all kinds: replicas that an HPA on the member decides. That Karmada may
-- overwrite what it finds stays with Karmada, which reads it there alone: the end of that is then no change of the member object.
function Retain(desiredObj, observedObj)
  keepApart(desiredObj, observedObj)
  local metadata = desiredObj.metadata
  local annotations = object(metadata) and metadata.annotations
  if object(annotations) and annotations["work.karmada.io/conflict-resolution"] == "overwrite" then
    annotations["work.karmada.io/conflict-resolution"] = "abort"
  end
  local labels = object(metadata) and metadata.labels
  if not object(labels) then
    return desiredObj
  end
  local ok, n = pcall(lookup, observedObj, replicasPath)
  if not ok or type(n) ~= "number" then
    n = nil
  end
  if labels["fleetworkload.io/probe"] ~= nil then
    error(string.format("fleetworkload probe: the member object has %s replicas", n == nil and "?" or string.format("%d", n)), 0)
  end
  if labels["resourcetemplate.karmada.io/retain-replicas"] ~= "true" or n == nil then
    return desiredObj
  end
  local at = desiredObj
  for i = 1, #replicasPath - 1 do
    if not object(at[replicasPath[i]]) then
      return desiredObj
    end
    at = at[replicasPath[i]]
  end
  at[replicasPath[#replicasPath]] = n
  return desiredObj
end

---------- replicaResource ----------
local function malformed()
  error("malformed", 0)
end

-- An empty table may be an empty list or an empty object: Lua cannot tell.
local function object(v)
  return type(v) == "table" and v[1] == nil
end

local function list(v)
  return type(v) == "table" and (v[1] ~= nil or next(v) == nil)
end

local function whole(v, least, most)
  if type(v) ~= "number" or v ~= math.floor(v) or v < least or v > most then
    malformed()
  end
  return v + 0
end

-- A number from 2^53 on is too large: Lua would take it for its neighbour.
local function convert(v, want)
  if v == nil then
    return nil
  elseif want == "count" and list(v) then
    return #v
  elseif want == "int" or want == "count" then
    return whole(v, 0, 2147483647)
  elseif want == "long" then
    return whole(v, 0, 9007199254740991)
  elseif want == "partition" and type(v) ~= "string" then
    return whole(v, -2147483647, 2147483647)
  elseif want == "object" then
    if not object(v) then
      malformed()
    end
    return next(v) ~= nil or nil
  elseif want == "bool" then
    if type(v) ~= "boolean" then
      malformed()
    end
  elseif type(v) ~= "string" or (want == "partition" and v == "") then
    malformed()
  end
  return v
end

-- A step of a path is a key, or chooses the element of a list whose key "by" is "is".
local function lookup(at, path)
  for _, step in ipairs(path) do
    if at == nil then
      return nil
    elseif type(step) == "table" then
      if not list(at) then
        malformed()
      end
      local found = nil
      for _, element in ipairs(at) do
        if not object(element) then
          malformed()
        end
        if found == nil and element[step.by] == step.is then
          found = element
        end
      end
      at = found
    else
      if not object(at) then
        malformed()
      end
      at = at[step]
    end
  end
  return at
end

local function defaultReplicas()
  return 1
end

local replicasPath = {"spec", "replicas"}

local templates = {{"spec", "template"}}

local function podTemplate(manifest)
  for _, path in ipairs(templates) do
    local ok, found = pcall(lookup, manifest, path)
    if ok and found ~= nil then
      return found
    end
  end
  return nil
end

local function replicasOf(manifest)
  local ok, raw = pcall(lookup, manifest, replicasPath)
  if ok and raw == nil then
    ok, raw = pcall(defaultReplicas, manifest)
  end
  local right, n = pcall(whole, raw, 0, 1000000)
  if not ok or not right then
    error(table.concat(replicasPath, ".") .. " must be a whole number from 0 to 1000000", 0)
  end
  return n
end

-- Without requirements a workload of 0 replicas goes to all clusters of its placement; with them it goes to none, and
-- scaling to 0 would delete it everywhere.
function GetReplicas(desiredObj)
  local n = replicasOf(desiredObj)
  local template = podTemplate(desiredObj)
  if n == 0 or not object(template) then
    return n, nil
  end
  local ok, requirements = pcall(require("kube").accuratePodRequirements, template)
  return n, ok and requirements or nil
end

---------- replicaRevision ----------
local function malformed()
  error("malformed", 0)
end

-- An empty table may be an empty list or an empty object: Lua cannot tell.
local function object(v)
  return type(v) == "table" and v[1] == nil
end

local function list(v)
  return type(v) == "table" and (v[1] ~= nil or next(v) == nil)
end

local function whole(v, least, most)
  if type(v) ~= "number" or v ~= math.floor(v) or v < least or v > most then
    malformed()
  end
  return v + 0
end

-- A number from 2^53 on is too large: Lua would take it for its neighbour.
local function convert(v, want)
  if v == nil then
    return nil
  elseif want == "count" and list(v) then
    return #v
  elseif want == "int" or want == "count" then
    return whole(v, 0, 2147483647)
  elseif want == "long" then
    return whole(v, 0, 9007199254740991)
  elseif want == "partition" and type(v) ~= "string" then
    return whole(v, -2147483647, 2147483647)
  elseif want == "object" then
    if not object(v) then
      malformed()
    end
    return next(v) ~= nil or nil
  elseif want == "bool" then
    if type(v) ~= "boolean" then
      malformed()
    end
  elseif type(v) ~= "string" or (want == "partition" and v == "") then
    malformed()
  end
  return v
end

-- A step of a path is a key, or chooses the element of a list whose key "by" is "is".
local function lookup(at, path)
  for _, step in ipairs(path) do
    if at == nil then
      return nil
    elseif type(step) == "table" then
      if not list(at) then
        malformed()
      end
      local found = nil
      for _, element in ipairs(at) do
        if not object(element) then
          malformed()
        end
        if found == nil and element[step.by] == step.is then
          found = element
        end
      end
      at = found
    else
      if not object(at) then
        malformed()
      end
      at = at[step]
    end
  end
  return at
end

local function check()
end

local replicasPath = {"spec", "replicas"}

function ReviseReplica(desiredObj, desiredReplica)
  check(desiredObj, desiredReplica)
  local at = desiredObj
  for i = 1, #replicasPath - 1 do
    if at[replicasPath[i]] == nil then
      at[replicasPath[i]] = {}
    end
    at = at[replicasPath[i]]
    if not object(at) then
      error(replicasPath[i] .. " must be an object", 0)
    end
  end
  at[replicasPath[#replicasPath]] = desiredReplica
  return desiredObj
end

---------- statusReflection ----------
local function malformed()
  error("malformed", 0)
end

-- An empty table may be an empty list or an empty object: Lua cannot tell.
local function object(v)
  return type(v) == "table" and v[1] == nil
end

local function list(v)
  return type(v) == "table" and (v[1] ~= nil or next(v) == nil)
end

local function whole(v, least, most)
  if type(v) ~= "number" or v ~= math.floor(v) or v < least or v > most then
    malformed()
  end
  return v + 0
end

-- A number from 2^53 on is too large: Lua would take it for its neighbour.
local function convert(v, want)
  if v == nil then
    return nil
  elseif want == "count" and list(v) then
    return #v
  elseif want == "int" or want == "count" then
    return whole(v, 0, 2147483647)
  elseif want == "long" then
    return whole(v, 0, 9007199254740991)
  elseif want == "partition" and type(v) ~= "string" then
    return whole(v, -2147483647, 2147483647)
  elseif want == "object" then
    if not object(v) then
      malformed()
    end
    return next(v) ~= nil or nil
  elseif want == "bool" then
    if type(v) ~= "boolean" then
      malformed()
    end
  elseif type(v) ~= "string" or (want == "partition" and v == "") then
    malformed()
  end
  return v
end

-- A step of a path is a key, or chooses the element of a list whose key "by" is "is".
local function lookup(at, path)
  for _, step in ipairs(path) do
    if at == nil then
      return nil
    elseif type(step) == "table" then
      if not list(at) then
        malformed()
      end
      local found = nil
      for _, element in ipairs(at) do
        if not object(element) then
          malformed()
        end
        if found == nil and element[step.by] == step.is then
          found = element
        end
      end
      at = found
    else
      if not object(at) then
        malformed()
      end
      at = at[step]
    end
  end
  return at
end

-- A status is nested as the object has it, or flat under the names of fields; a flat value counts first.
local function readField(status, field)
  local v = nil
  if field.path ~= nil then
    v = convert(lookup(status, field.path), field.type)
  end
  if status[field.name] ~= nil then
    v = convert(status[field.name], field.type)
  end
  return v
end

local fields = {
  {name = "generation", type = "long"},
  {name = "resourceTemplateGeneration", type = "long"},
  {name = "observedGeneration", type = "long"},
  {name = "replicas", type = "int"},
  {name = "readyReplicas", type = "int"},
  {name = "updatedReplicas", type = "int"},
  {name = "availableReplicas", type = "int"},
  {name = "updatedReadyReplicas", type = "int"},
  {name = "updatedAvailableReplicas", type = "int"},
  {name = "expectedUpdatedReplicas", type = "int"},
  {name = "currentRevision", type = "string"},
  {name = "updateRevision", type = "string"},
  {name = "labelSelector", type = "string"},
  {name = "conditionProgressing", type = "string", path = {"conditions", {by = "type", is = "Progressing"}, "status"}},
  {name = "reasonProgressing", type = "string", path = {"conditions", {by = "type", is = "Progressing"}, "reason"}},
}

local function put(at, path, v)
  for i = 1, #path - 1 do
    local step, below = path[i], nil
    if type(step) == "table" then
      for _, element in ipairs(at) do
        if element[step.by] == step.is then
          below = element
        end
      end
      if below == nil then
        below = {[step.by] = step.is}
        at[#at + 1] = below
      end
    else
      below = at[step]
      if below == nil then
        below = {}
        at[step] = below
      end
    end
    at = below
  end
  at[path[#path]] = v
end

local function annotation(metadata, name)
  local annotations = metadata.annotations
  if object(annotations) and type(annotations[name]) == "string" then
    return annotations[name]
  end
  return nil
end

local function templateGeneration(metadata)
  local text = annotation(metadata, "resourcetemplate.karmada.io/generation")
  if text ~= nil and #text <= 15 and string.match(text, "^[0-9]+$") then
    return tonumber(text, 10)
  end
  return nil
end

local function identity(metadata)
  if type(metadata.uid) == "string" then
    return metadata.uid
  end
  return nil
end

-- What stands for a value of the wrong type, under the flat name of its field. It must not vanish on the way, because
-- absence means something else.
local wrong = {int = false, count = false, long = false, string = false, bool = "malformed"}
local shapes = {string = "a string", number = "a number", boolean = "a boolean", table = "a list"}

function ReflectStatus(observedObj)
  local reflected = {}
  if not object(observedObj) then
    return reflected
  end
  local metadata, status = observedObj.metadata, observedObj.status
  if not object(metadata) then
    metadata = {}
  end
  reflected.fleetworkloadRevision = annotation(metadata, "fleetworkload.io/revision")
  reflected.fleetworkloadUID = identity(metadata)
  if status == nil then
    status = {}
  elseif not object(status) then
    reflected["fleetworkload.io/malformed"] = shapes[type(status)]
    return reflected
  end
  if metadata.generation ~= nil then
    status.generation = metadata.generation
  end
  status.resourceTemplateGeneration = templateGeneration(metadata)
  for _, field in ipairs(fields) do
    local ok, v = pcall(readField, status, field)
    if not ok then
      reflected[field.name] = wrong[field.type]
    elseif field.type == "count" then
      reflected[field.name] = v
    elseif v ~= nil then
      put(reflected, field.path or {field.name}, v)
    end
  end
  return reflected
end

---------- statusAggregation ----------
local function malformed()
  error("malformed", 0)
end

-- An empty table may be an empty list or an empty object: Lua cannot tell.
local function object(v)
  return type(v) == "table" and v[1] == nil
end

local function list(v)
  return type(v) == "table" and (v[1] ~= nil or next(v) == nil)
end

local function whole(v, least, most)
  if type(v) ~= "number" or v ~= math.floor(v) or v < least or v > most then
    malformed()
  end
  return v + 0
end

-- A number from 2^53 on is too large: Lua would take it for its neighbour.
local function convert(v, want)
  if v == nil then
    return nil
  elseif want == "count" and list(v) then
    return #v
  elseif want == "int" or want == "count" then
    return whole(v, 0, 2147483647)
  elseif want == "long" then
    return whole(v, 0, 9007199254740991)
  elseif want == "partition" and type(v) ~= "string" then
    return whole(v, -2147483647, 2147483647)
  elseif want == "object" then
    if not object(v) then
      malformed()
    end
    return next(v) ~= nil or nil
  elseif want == "bool" then
    if type(v) ~= "boolean" then
      malformed()
    end
  elseif type(v) ~= "string" or (want == "partition" and v == "") then
    malformed()
  end
  return v
end

-- A step of a path is a key, or chooses the element of a list whose key "by" is "is".
local function lookup(at, path)
  for _, step in ipairs(path) do
    if at == nil then
      return nil
    elseif type(step) == "table" then
      if not list(at) then
        malformed()
      end
      local found = nil
      for _, element in ipairs(at) do
        if not object(element) then
          malformed()
        end
        if found == nil and element[step.by] == step.is then
          found = element
        end
      end
      at = found
    else
      if not object(at) then
        malformed()
      end
      at = at[step]
    end
  end
  return at
end

-- A status is nested as the object has it, or flat under the names of fields; a flat value counts first.
local function readField(status, field)
  local v = nil
  if field.path ~= nil then
    v = convert(lookup(status, field.path), field.type)
  end
  if status[field.name] ~= nil then
    v = convert(status[field.name], field.type)
  end
  return v
end

local fields = {
  {name = "generation", type = "long"},
  {name = "resourceTemplateGeneration", type = "long"},
  {name = "observedGeneration", type = "long"},
  {name = "replicas", type = "int", combine = "sum", required = true},
  {name = "readyReplicas", type = "int", combine = "sum", required = true},
  {name = "updatedReplicas", type = "int", combine = "sum", required = true},
  {name = "availableReplicas", type = "int", combine = "sum", required = true},
  {name = "updatedReadyReplicas", type = "int", combine = "sum", required = true},
  {name = "updatedAvailableReplicas", type = "int", combine = "sum"},
  {name = "expectedUpdatedReplicas", type = "int", combine = "sum", zero = true},
  {name = "currentRevision", type = "string", combine = "equal"},
  {name = "updateRevision", type = "string", combine = "equal"},
  {name = "labelSelector", type = "string", combine = "equal"},
  {name = "conditionProgressing", type = "string", path = {"conditions", {by = "type", is = "Progressing"}, "status"}},
  {name = "reasonProgressing", type = "string", path = {"conditions", {by = "type", is = "Progressing"}, "reason"}},
}

local statusOptional = false

local function readStatus(status)
  if not object(status) or status["fleetworkload.io/malformed"] ~= nil then
    malformed()
  end
  local values = {}
  for _, field in ipairs(fields) do
    values[field.name] = readField(status, field)
  end
  return values
end

-- The generations, and lists, are no evidence that its controller has looked at the object.
local function seen(values)
  for _, field in ipairs(fields) do
    local name = field.name
    if values[name] ~= nil and field.type ~= "count"
      and (statusOptional or (name ~= "generation" and name ~= "resourceTemplateGeneration")) then
      return true
    end
  end
  return false
end

local observes = true

local function put(at, path, v)
  for i = 1, #path - 1 do
    local step, below = path[i], nil
    if type(step) == "table" then
      for _, element in ipairs(at) do
        if element[step.by] == step.is then
          below = element
        end
      end
      if below == nil then
        below = {[step.by] = step.is}
        at[#at + 1] = below
      end
    else
      below = at[step]
      if below == nil then
        below = {}
        at[step] = below
      end
    end
    at = below
  end
  at[path[#path]] = v
end

local function give(field, total, v)
  total.count = total.count + 1
  local how = field.combine
  if how == "sum" then
    total.value = (total.value or 0) + v
  elseif how == "any" or how == "all" then
    if v == "True" or v == true then
      total.yes = total.yes + 1
    end
  elseif total.value == nil then
    total.value = v
  elseif how == "equal" then
    total.differ = total.differ or total.value ~= v
  elseif how == "min" then
    if v < total.value then
      total.value = v
    end
  elseif how == "max" or how == "maxAll" then
    if v > total.value then
      total.value = v
    end
  elseif how == "worst" then
    local new, old = field.order[v] or 0, field.order[total.value] or 0
    if new < old or (new == old and v < total.value) then
      total.value = v
    end
  end
end

-- A condition that does not hold is left out, as job controllers do.
local function outcome(field, total, fleet)
  local how = field.combine
  if how == "any" then
    return total.yes > 0 and "True" or nil
  elseif how == "all" then
    return total.yes == fleet.clusters and "True" or nil
  elseif (how == "maxAll" and total.count < fleet.clusters) or total.differ then
    return nil
  elseif how == "sum" and total.count > 0 and total.value > 2147483647 then
    return nil -- more than the field holds: some cluster is wrong, and nobody knows which
  end
  return total.value
end

local function generationOf(desiredObj)
  local metadata = desiredObj.metadata
  return object(metadata) and type(metadata.generation) == "number" and metadata.generation or 0
end

-- The template's newest generation is observed when the member object was made from it and its controller has taken
-- note of the member object's newest generation.
local function current(values, generation)
  return values.observedGeneration ~= nil and values.generation ~= nil
    and values.observedGeneration >= values.generation
    and (values.resourceTemplateGeneration or 0) >= generation
end

local function fold(statusItems, generation)
  local fleet, totals = {clusters = 0, reported = 0, current = true}, {}
  for _, field in ipairs(fields) do
    totals[field.name] = {count = 0, yes = 0, differ = false}
  end
  for _, item in ipairs(statusItems) do
    fleet.clusters = fleet.clusters + 1
    local ok, values = pcall(readStatus, item.status)
    if ok and seen(values) then
      fleet.reported = fleet.reported + 1
      fleet.current = fleet.current and current(values, generation)
      for _, field in ipairs(fields) do
        local v = values[field.name]
        if v == nil and field.zero then
          v = 0
        end
        if v ~= nil and field.combine ~= nil then
          give(field, totals[field.name], v)
        end
      end
    end
  end
  return fleet, totals
end

-- The status is left alone when no cluster has reported: nothing is known then.
function AggregateStatus(desiredObj, statusItems)
  local generation = generationOf(desiredObj)
  local fleet, totals = fold(type(statusItems) == "table" and statusItems or {}, generation)
  if fleet.reported == 0 then
    return desiredObj
  end
  local status = {}
  for _, field in ipairs(fields) do
    local v = outcome(field, totals[field.name], fleet)
    if v == nil and field.required then
      v = field.type == "int" and 0 or ""
    end
    if v ~= nil then
      put(status, field.path or {field.name}, v)
    end
  end
  if observes then
    local before = object(desiredObj.status) and desiredObj.status.observedGeneration or nil
    if fleet.reported == fleet.clusters and fleet.current then
      status.observedGeneration = generation
    elseif type(before) == "number" then
      status.observedGeneration = before
    end
  end
  desiredObj.status = next(status) ~= nil and status or nil
  return desiredObj
end

---------- healthInterpretation ----------
local function malformed()
  error("malformed", 0)
end

-- An empty table may be an empty list or an empty object: Lua cannot tell.
local function object(v)
  return type(v) == "table" and v[1] == nil
end

local function list(v)
  return type(v) == "table" and (v[1] ~= nil or next(v) == nil)
end

local function whole(v, least, most)
  if type(v) ~= "number" or v ~= math.floor(v) or v < least or v > most then
    malformed()
  end
  return v + 0
end

-- A number from 2^53 on is too large: Lua would take it for its neighbour.
local function convert(v, want)
  if v == nil then
    return nil
  elseif want == "count" and list(v) then
    return #v
  elseif want == "int" or want == "count" then
    return whole(v, 0, 2147483647)
  elseif want == "long" then
    return whole(v, 0, 9007199254740991)
  elseif want == "partition" and type(v) ~= "string" then
    return whole(v, -2147483647, 2147483647)
  elseif want == "object" then
    if not object(v) then
      malformed()
    end
    return next(v) ~= nil or nil
  elseif want == "bool" then
    if type(v) ~= "boolean" then
      malformed()
    end
  elseif type(v) ~= "string" or (want == "partition" and v == "") then
    malformed()
  end
  return v
end

-- A step of a path is a key, or chooses the element of a list whose key "by" is "is".
local function lookup(at, path)
  for _, step in ipairs(path) do
    if at == nil then
      return nil
    elseif type(step) == "table" then
      if not list(at) then
        malformed()
      end
      local found = nil
      for _, element in ipairs(at) do
        if not object(element) then
          malformed()
        end
        if found == nil and element[step.by] == step.is then
          found = element
        end
      end
      at = found
    else
      if not object(at) then
        malformed()
      end
      at = at[step]
    end
  end
  return at
end

-- A status is nested as the object has it, or flat under the names of fields; a flat value counts first.
local function readField(status, field)
  local v = nil
  if field.path ~= nil then
    v = convert(lookup(status, field.path), field.type)
  end
  if status[field.name] ~= nil then
    v = convert(status[field.name], field.type)
  end
  return v
end

local fields = {
  {name = "generation", type = "long"},
  {name = "resourceTemplateGeneration", type = "long"},
  {name = "observedGeneration", type = "long"},
  {name = "replicas", type = "int"},
  {name = "readyReplicas", type = "int"},
  {name = "updatedReplicas", type = "int"},
  {name = "availableReplicas", type = "int"},
  {name = "updatedReadyReplicas", type = "int"},
  {name = "updatedAvailableReplicas", type = "int"},
  {name = "expectedUpdatedReplicas", type = "int"},
  {name = "currentRevision", type = "string"},
  {name = "updateRevision", type = "string"},
  {name = "labelSelector", type = "string"},
  {name = "conditionProgressing", type = "string", path = {"conditions", {by = "type", is = "Progressing"}, "status"}},
  {name = "reasonProgressing", type = "string", path = {"conditions", {by = "type", is = "Progressing"}, "reason"}},
}

local statusOptional = false

local function readStatus(status)
  if not object(status) or status["fleetworkload.io/malformed"] ~= nil then
    malformed()
  end
  local values = {}
  for _, field in ipairs(fields) do
    values[field.name] = readField(status, field)
  end
  return values
end

-- The generations, and lists, are no evidence that its controller has looked at the object.
local function seen(values)
  for _, field in ipairs(fields) do
    local name = field.name
    if values[name] ~= nil and field.type ~= "count"
      and (statusOptional or (name ~= "generation" and name ~= "resourceTemplateGeneration")) then
      return true
    end
  end
  return false
end

-- How many of n pods a partition keeps old. OpenKruise rounds up, and lets one pod go at least unless it says 100%.
local function kept(partition, n, down)
  if partition == nil or n <= 0 then
    return 0
  elseif type(partition) == "number" then
    return math.min(math.max(partition, 0), n)
  end
  local percent = string.match(partition, "^([0-9]+)%%$") or string.match(partition, "^([0-9]+%.[0-9]+)%%$")
  if percent == nil or #partition > 16 then
    malformed()
  end
  local share = tonumber(percent) * n / 100
  if down then
    return math.floor(math.min(share, n))
  end
  local count = math.min(math.ceil(share), n + 1)
  if n > 1 and count == n and partition ~= "100%" then
    count = n - 1
  end
  return math.min(count, n)
end

local function healthy(observedObj)
  local status, metadata = observedObj.status, observedObj.metadata
  if status == nil then
    status = {}
  end
  if object(status) and object(metadata) and metadata.generation ~= nil then
    status.generation = metadata.generation
  end
  local v = readStatus(status)
  v.seen = seen(v)
  v.deletionTimestamp = convert(lookup(observedObj, {"metadata", "deletionTimestamp"}), "string")
  v.desired = convert(lookup(observedObj, {"spec", "replicas"}), "int")
  if v.desired == nil then
    v.desired = 1
  end
  v.partition = convert(lookup(observedObj, {"spec", "updateStrategy", "partition"}), "partition")
  v.paused = convert(lookup(observedObj, {"spec", "updateStrategy", "paused"}), "bool")
  v.strategy = convert(lookup(observedObj, {"spec", "updateStrategy", "type"}), "string")
  v.onDelete = ((v.strategy or "") == "OnDelete")
  v.expected = ((v.onDelete or false) and 0 or ((v.desired or 0) - kept(v.partition, (v.desired or 0), false)))
  v.surplus = ((v.replicas or 0) - (v.desired or 0))
  if v.deletionTimestamp ~= nil then
    return false -- Deleting
  end
  if not ((v.seen or false)) then
    return false -- WaitingForStatus
  end
  if not (v.observedGeneration ~= nil) then
    return false -- NotObserved
  end
  if (v.generation ~= nil and ((v.observedGeneration or 0) < (v.generation or 0))) then
    return false -- NotObserved
  end
  if not (v.desired ~= nil) then
    return false -- DesiredUnknown
  end
  if ((v.reasonProgressing or "") == "ProgressDeadlineExceeded") then
    return false -- DeadlineExceeded
  end
  if not (v.replicas ~= nil) then
    return false -- Incomplete
  end
  if not (v.readyReplicas ~= nil) then
    return false -- Incomplete
  end
  if not (v.updatedReplicas ~= nil) then
    return false -- Incomplete
  end
  if not (v.availableReplicas ~= nil) then
    return false -- Incomplete
  end
  if (((v.paused or false) and ((v.updatedReplicas or 0) < (v.expected or 0))) and ((v.replicas or 0) >= (v.desired or 0))) then
    return false -- Paused
  end
  if ((v.updatedReplicas or 0) < (v.expected or 0)) then
    return false -- Updating
  end
  if ((v.replicas or 0) < (v.desired or 0)) then
    return false -- Creating
  end
  if ((v.replicas or 0) > (v.desired or 0)) then
    return false -- ScalingDown
  end
  if ((v.availableReplicas or 0) < (v.desired or 0)) then
    return false -- Unavailable
  end
  if ((((v.readyReplicas or 0) < (v.availableReplicas or 0)) or ((v.replicas or 0) < (v.readyReplicas or 0))) or ((v.replicas or 0) < (v.updatedReplicas or 0))) then
    return false -- Contradictory
  end
  if ((v.onDelete or false) and ((v.updatedReplicas or 0) < (v.desired or 0))) then
    return true -- OnDelete
  end
  if ((v.updatedReplicas or 0) < (v.desired or 0)) then
    return true -- PartitionReached
  end
  return true -- Complete
end

function InterpretHealth(observedObj)
  local ok, verdict = pcall(healthy, observedObj)
  return ok and verdict == true
end

---------- dependencyInterpretation ----------
local function malformed()
  error("malformed", 0)
end

-- An empty table may be an empty list or an empty object: Lua cannot tell.
local function object(v)
  return type(v) == "table" and v[1] == nil
end

local function list(v)
  return type(v) == "table" and (v[1] ~= nil or next(v) == nil)
end

local function whole(v, least, most)
  if type(v) ~= "number" or v ~= math.floor(v) or v < least or v > most then
    malformed()
  end
  return v + 0
end

-- A number from 2^53 on is too large: Lua would take it for its neighbour.
local function convert(v, want)
  if v == nil then
    return nil
  elseif want == "count" and list(v) then
    return #v
  elseif want == "int" or want == "count" then
    return whole(v, 0, 2147483647)
  elseif want == "long" then
    return whole(v, 0, 9007199254740991)
  elseif want == "partition" and type(v) ~= "string" then
    return whole(v, -2147483647, 2147483647)
  elseif want == "object" then
    if not object(v) then
      malformed()
    end
    return next(v) ~= nil or nil
  elseif want == "bool" then
    if type(v) ~= "boolean" then
      malformed()
    end
  elseif type(v) ~= "string" or (want == "partition" and v == "") then
    malformed()
  end
  return v
end

-- A step of a path is a key, or chooses the element of a list whose key "by" is "is".
local function lookup(at, path)
  for _, step in ipairs(path) do
    if at == nil then
      return nil
    elseif type(step) == "table" then
      if not list(at) then
        malformed()
      end
      local found = nil
      for _, element in ipairs(at) do
        if not object(element) then
          malformed()
        end
        if found == nil and element[step.by] == step.is then
          found = element
        end
      end
      at = found
    else
      if not object(at) then
        malformed()
      end
      at = at[step]
    end
  end
  return at
end

local function child(v, key)
  if object(v) then
    return v[key]
  end
  return nil
end

local function elements(v, key)
  local found = child(v, key)
  if list(found) then
    return found
  end
  return {}
end

-- What has no namespace cannot be found in any: a cluster-scoped workload that does not say where its pods are.
local function references(namespace)
  local found, seen = {}, {}
  local function add(kind, name)
    if type(name) ~= "string" or name == "" or type(namespace) ~= "string" or namespace == "" then
      return
    elseif kind == "ServiceAccount" and name == "default" then
      return
    end
    local key = kind .. "/" .. name
    if not seen[key] then
      seen[key] = true
      found[#found + 1] = {apiVersion = "v1", kind = kind, namespace = namespace, name = name}
    end
  end
  return found, add
end

local function container(add, c)
  for _, from in ipairs(elements(c, "envFrom")) do
    add("ConfigMap", child(child(from, "configMapRef"), "name"))
    add("Secret", child(child(from, "secretRef"), "name"))
  end
  for _, env in ipairs(elements(c, "env")) do
    local from = child(env, "valueFrom")
    add("ConfigMap", child(child(from, "configMapKeyRef"), "name"))
    add("Secret", child(child(from, "secretKeyRef"), "name"))
  end
end

-- Volumes whose driver needs a Secret, in the order in which the first counts.
local storage = {"cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"}

local function volume(add, v)
  if child(v, "configMap") ~= nil then
    add("ConfigMap", child(v.configMap, "name"))
  elseif child(v, "secret") ~= nil then
    add("Secret", child(v.secret, "secretName"))
  elseif child(v, "persistentVolumeClaim") ~= nil then
    add("PersistentVolumeClaim", child(v.persistentVolumeClaim, "claimName"))
  elseif child(v, "projected") ~= nil then
    for _, source in ipairs(elements(v.projected, "sources")) do
      add("ConfigMap", child(child(source, "configMap"), "name"))
      add("Secret", child(child(source, "secret"), "name"))
    end
  elseif child(v, "azureFile") ~= nil then
    add("Secret", child(v.azureFile, "secretName"))
  elseif child(v, "csi") ~= nil then
    add("Secret", child(child(v.csi, "nodePublishSecretRef"), "name"))
  else
    for _, driver in ipairs(storage) do
      if child(v, driver) ~= nil then
        add("Secret", child(child(v[driver], "secretRef"), "name"))
        return
      end
    end
  end
end

local function pod(add, spec)
  local account = child(spec, "serviceAccountName")
  if account == nil or account == "" then
    account = child(spec, "serviceAccount")
  end
  add("ServiceAccount", account)
  for _, secret in ipairs(elements(spec, "imagePullSecrets")) do
    add("Secret", child(secret, "name"))
  end
  for _, containers in ipairs({"initContainers", "containers", "ephemeralContainers"}) do
    for _, c in ipairs(elements(spec, containers)) do
      container(add, c)
    end
  end
  for _, v in ipairs(elements(spec, "volumes")) do
    volume(add, v)
  end
end

local templates = {{"spec", "template"}}

local function podTemplate(manifest)
  for _, path in ipairs(templates) do
    local ok, found = pcall(lookup, manifest, path)
    if ok and found ~= nil then
      return found
    end
  end
  return nil
end

function GetDependencies(desiredObj)
  local found, add = references(child(child(desiredObj, "metadata"), "namespace"))
  pod(add, child(podTemplate(desiredObj), "spec"))
  return found
end

