set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'scaling-database-classic-users.png'
set title 'database: Regent classic: users over time'
set xlabel 'time (s)'
set ylabel 'users'
set xrange [0:*]
set yrange [0:*]
set grid
set samples 200
set key above
plot 'scaling-database-classic-users-users.dat' using 1:2 with steps linewidth 2 linecolor rgb '#332288' dashtype (10,3,2,3) title 'users'
