-- Makes a part of the world, tells which block is at a place, puts another one there, and ends.
local low, high = {x = -40, y = -40, z = -40}, {x = 40, y = 40, z = 40}
local mark = {x = 7, y = -30, z = 3}

minetest.register_on_mods_loaded(function()
  minetest.after(0, function()
    minetest.emerge_area(low, high, function(_, _, left)
      if left > 0 then return end
      print("trial: at the mark " .. minetest.get_node(mark).name)
      minetest.set_node(mark, {name = "default:mese"})
      minetest.request_shutdown()
    end)
  end)
end)
